"""A payment service to practise on, in a process of its own: `python -m demo.provider --ledger FILE`.

It charges for real, into a ledger on disk, and misbehaves on request: it acts and then drops the answer,
answers late, wrongly or not at all. Nothing here imports Django or Interlock. README.md has the API.
"""
