"""What a plan says of itself: text, data, counts and costs."""
