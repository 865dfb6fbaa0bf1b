"""What people do and look up, whatever the door: shared by commands, console and API."""
