"""Parts that several handlers share: response layouts, record checks, item limits."""
