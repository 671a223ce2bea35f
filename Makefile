# Each target sets itself up in .venv; see ci/setup.
STEPS = build lint,types,tidy+simulation unit,server,crash,wheel+golden,bugbank,damage,fuzz,spark

.PHONY: demo quick test conformance long bench clean

demo:
	@ci/setup demo
	@.venv/bin/python demo/run.py

test: .setup
	@ci/check $(STEPS)

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
	@# tests and benchmarks start hundreds of processes, which would compile it each where PYTHONDONTWRITEBYTECODE is set
	@.venv/bin/python -m compileall -q txnkafka tests bench

clean:
	rm -rf build .venv txnkafka.egg-info txnkafka/_core/*.so
