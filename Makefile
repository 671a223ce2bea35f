# Each target sets itself up in .venv; see ci/setup.
unexport PYTHONDONTWRITEBYTECODE # see ci/pytest

.PHONY: demo quick test conformance long bench clean

demo:
	@ci/setup demo
	@.venv/bin/python demo/run.py

test: .setup
	@ci/test

quick: .setup
	@ci/quick

conformance: .setup
	@ci/conformance

long: .setup
	@ci/long

bench: .setup
	@QUICK=$(QUICK) ci/bench

.PHONY: .setup
.setup:
	@ci/setup

clean:
	rm -rf build .venv txnkafka.egg-info txnkafka/_core/*.so
