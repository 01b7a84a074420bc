"""The process that starts, watches and ends one run; the only writer of its status."""
