"""Which evidence an item needs: image, question, either, or both together; arrays in, frozen dataclasses out."""
