"""What a person sees of a job: figures, the live view, still images, terminal text."""
