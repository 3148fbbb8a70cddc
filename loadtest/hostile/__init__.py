"""What hostile policies cost the requests that they do not match."""
