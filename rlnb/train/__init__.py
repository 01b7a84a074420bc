"""Inside the job: the only room that knows torch and stable-baselines3."""
