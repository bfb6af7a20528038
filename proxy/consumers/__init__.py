"""Server-side consumers: v2 instances and group streams. Each consumer belongs to one worker."""
