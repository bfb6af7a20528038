"""The broker's reference pages, written from the code itself: `python -m broker.reference` puts them into docs/."""
