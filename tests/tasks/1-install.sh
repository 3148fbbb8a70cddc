# Install it from a checkout, and see that it is there.
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check "$CHECKOUT$EXTRAS"
waddle version | grep '^waddle '
