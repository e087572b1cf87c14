"""What the tests share. Property tests draw the same cases in every run."""

from hypothesis import HealthCheck, settings

settings.register_profile("same", derandomize=True, deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
settings.load_profile("same")
