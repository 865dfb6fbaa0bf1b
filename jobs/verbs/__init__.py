"""What may be done to jobs: a file for each who does it. `Job.objects` has them all (jobs/manager.py)."""
