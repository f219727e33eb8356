# make demo   installs what is missing, builds for speed, and runs a hub with simulated drivers and riders
# make test   installs what is missing, builds, and runs every test
# make help   says what else there is

SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: help demo test build release format lint fuzz conformance conformance-full sanitize bench figures growth capacity abuse abuse-search crossing torture ingest docs \
  microbench gps-score demo-cluster test-cluster test-checks test-deploy test-monitoring deb image deps loadtest-release swift-tests check-fuzz foreign-tests foreign-full foreign-package test-web test-release test-descriptions clean

ARGS ?=
# Nothing is seen from outside but `main`, so that the linker leaves out what nobody calls; and libstdc++ is in it, whose
# archive is found before the library. `deps` makes both files.
LINK := -Xlinker --version-script=$(CURDIR)/.build/link/exports -Xlinker -L$(CURDIR)/.build/link
# With the Swift runtime in the executable, so that it runs where no Swift is. One and the same for all targets: with other
# flags everything would be built anew.
RELEASE := swift build -c release --static-swift-stdlib $(LINK)
# What each fuzz target runs for. Given on the command line or in the environment; bash's own SECONDS is not exported.
SECONDS ?= 60
KILLS ?= 200
HISTORIES ?= 10000
PHONES ?= 5
# What a target needs beside what building needs.
DEPS ?=
FUZZ_TARGETS := $(patsubst Tests/Fuzz/%.swift,%,$(wildcard Tests/Fuzz/fuzz_*.swift))

help:
	@echo 'make demo [ARGS="--duration 20 --drivers 500"]   hub, simulated drivers, riders; Ctrl-C ends it'
	@echo 'make demo-cluster [ARGS="--duration 30"]         three hubs, Redis and HAProxy; riders at other hubs; Ctrl-C ends it'
	@echo 'make test                                        every test'
	@echo 'make foreign-full [KILLS=20 EVENTS=100000 …]     foreign clients as often as is promised: webhooks, streams, tokens'
	@echo 'make test-cluster [CUTS=1000 ROVERS=1000]        three hubs over a real Redis: cuts, stops, kills, strangers'
	@echo 'make test-checks                                 takes out what hubs check of each other: tests must fail without it'
	@echo 'make test-descriptions [FUZZ_SECONDS=60]         OpenAPI and AsyncAPI documents, held to a running hub'
	@echo 'make test-deploy                                 what is in deploy/, with real proxies, buildah, dpkg and lintian'
	@echo 'make test-web                                    the JavaScript client, with Node, and the pages, in Chromium'
	@echo 'make test-release                                the tests of sockets, threads and disks, as the optimiser leaves them'
	@echo 'make release                                     .build/dist/locationhub, which needs no Swift where it runs'
	@echo 'make deb                                         a package for Debian and Ubuntu, in .build/dist'
	@echo 'make image [IMAGE=name:tag]                      an image with the hub and nothing else, with buildah'
	@echo 'make bench                                       instructions, allocations and memory, held against limits'
	@echo 'make figures                                     what a message costs the hub on this machine, and its thresholds'
	@echo 'make growth                                      how that grows with connections, drivers and channels'
	@echo 'make crossing                                    what it costs that rider and driver are at two hubs'
	@echo 'make capacity                                    measures what a city needs; writes loadtest/CAPACITY.md'
	@echo 'make abuse                                       hostile connections, and one hostile rider: do others notice?'
	@echo 'make abuse-search [SECONDS=600]                  is there a message that costs more than it is charged for?'
	@echo 'make torture [KILLS=200 HISTORIES=10000 PHONES=5]  seeded histories of failures, a phone'"'"'s days, kill -9 under load: is all there?'
	@echo 'make ingest [DIR=/data]                          batches of 50 fixes with a journal on that disk: fixes/s and acks'
	@echo 'make microbench                                  nanoseconds and instructions of its pieces'
	@echo 'make gps-score                                   the tracker on recorded drives, where ../shared has them'
	@echo 'make conformance                                 a quick run of the Autobahn WebSocket suite, server and client'
	@echo 'make conformance-full                            all 517 cases of it: half an hour or more'
	@echo 'make fuzz [SECONDS=60]                           every fuzz target for so long'
	@echo 'make sanitize                                    every test under the address and the thread sanitizer: an hour'
	@echo 'make test-monitoring                             alerts and dashboard beside a hub under load'
	@echo 'make docs                                        writes the tables in protocol/ and deploy/ from those in the code'
	@echo 'make format, make lint                           swift format'

demo: release
	@exec .build/release/locationhub demo $(ARGS)

# Installs Redis and HAProxy where they are missing, and says so.
demo-cluster: DEPS := redis-server haproxy
demo-cluster: release
	@exec python3 Tests/Cluster/demo.py $(ARGS)

# Foreign clients and pages mostly wait, and a foreign package is mostly built: side by side.
test: deps lint swift-tests
	@$(MAKE) --no-print-directory --output-sync=target -j4 test-web foreign-tests foreign-package check-fuzz

# What failed is said once more at the end, where one among thousands of lines is found.
#
# Dictionaries have the same order in each process, so that a seed gives the same history again.
SAME_ORDER := SWIFT_DETERMINISTIC_HASHING=1

# Tests of whole hubs mostly wait, all others compute: they run side by side, and the former in two halves. The bundle is
# run by itself: two of SwiftPM in one folder write the same files.
TEST := NO_COLOR=1 $(CURDIR)/.build/debug/location-hubPackageTests.xctest --testing-library swift-testing
HALF := ^EndToEndTests\.EndToEnd/[A-I]
# With the product optimised (Package.swift) the tests take less than half of the processor time. Without debug
# information all is built in less time, and a crash still names functions. For a debugger: `swift build`.
BUILD := swift build -debug-info-format none
swift-tests test-cluster test-descriptions test-checks build: export HUB_OPTIMISED := 1
swift-tests: deps
	$(BUILD) --build-tests
	@$(TEST) --filter '$(HALF)' >.build/hubs1.log 2>&1 & hubs1=$$!; \
	$(TEST) --filter '^EndToEndTests\.' --skip '$(HALF)' >.build/hubs2.log 2>&1 & hubs2=$$!; \
	set -o pipefail; $(SAME_ORDER) $(TEST) --skip '^EndToEndTests\.' 2>&1 | tee .build/tests.log; status=$$?; \
	hubs_status=0; wait $$hubs1 || hubs_status=$$?; wait $$hubs2 || hubs_status=$$?; cat .build/hubs[12].log; \
	[ $$status$$hubs_status = 00 ] || { \
	  echo; echo 'What failed (all of it: .build/tests.log, .build/hubs1.log, .build/hubs2.log):'; \
	  for log in tests hubs1 hubs2; do \
	    grep -a -A 3 -E '✘|Fatal error|error: |Killed' .build/$$log.log; tail -n 2 .build/$$log.log | cut -c 1-300; \
	  done; \
	  echo "Exit codes: $$status, and $$hubs_status of whole hubs' tests."; exit 1; }

# What only the optimiser breaks, tests without it never see: those with sockets, threads and disks, built as what is shipped.
test-release: deps
	swift build -c release --build-tests --scratch-path .build/release-tests -Xswiftc -enable-testing
	swift test -c release --skip-build --scratch-path .build/release-tests -Xswiftc -enable-testing \
	  --filter '^(System|Transport|HubRuntime|Gateway|Journal|EndToEnd)Tests\.'

# Whether the fuzz targets compile.
check-fuzz:
	@Tests/Fuzz/check.sh

foreign-tests: deps
	@Tests/Foreign/run.sh

# The foreign tests at the specified counts: 20 kills and restarts each, 100,000 webhook events, 1,000 cuts of an event
# stream, 10^6 forged refresh tokens. With the executable that is shipped; 20 minutes beside other work.
foreign-full: release
	@KILLS=$${KILLS:-20} EVENTS=$${EVENTS:-100000} CUTS=$${CUTS:-1000} FORGED=$${FORGED:-1000000} \
	  Tests/Foreign/run.sh .build/dist/locationhub

# With the hub as `make build` makes it: four minutes. `.ci/run` has 20 drivers that come 10 times each; the threshold is
# for 1,000 that come 50 times, which takes ten minutes more. SEED=… for other cuts and ways.
test-cluster: export CUTS ?= 1000
test-cluster: export ROVERS ?= 1000
test-cluster: export ROUNDS ?= 50
test-cluster: deps
	$(BUILD) --product locationhub
	@Tests/Cluster/run.sh

# Builds the tests four times, with the sources changed meanwhile.
test-checks: deps
	@Tests/Cluster/without-checks.sh

# With the hub as `make build` makes it: a minute, and another for what it installs at first.
test-descriptions: deps
	$(BUILD) --product locationhub
	@Tests/Descriptions/run.sh

# With the executable that is shipped. What can't be installed is skipped by name.
test-deploy: release
	@Tests/Deploy/run.sh

# A package that depends on this one, with the README's and the tutorials' code in it.
foreign-package: deps
	@Tests/ForeignPackage/run.sh

# Vectors, time moved by hand, and a real hub where one was built: half a minute.
test-web:
	@Tests/Web/run.sh

build: deps
	$(BUILD)

# What is installed has no symbols, 14 MB instead of 38; gdb and perf find them in the .debug file where it lies beside it.
release: deps
	$(RELEASE) --product locationhub
	@mkdir -p .build/dist
	objcopy --only-keep-debug .build/release/locationhub .build/dist/locationhub.debug
	cd .build/dist && objcopy --strip-all --add-gnu-debuglink=locationhub.debug ../release/locationhub locationhub

# DEBFULLNAME and DEBEMAIL say who packs it.
deb: release
	@deploy/debian/build.sh

# STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot within a container.
image: DEPS := buildah
image: release
	@deploy/image/build.sh .build/dist/locationhub $(IMAGE)

# The tables in protocol/ and deploy/, from those in the code.
docs:
	WRITE_TABLES=1 swift test --filter '^(DocumentTests|LocationHubClientTests)\.'

format:
	swift format -i -r Sources Tests loadtest Package.swift

lint:
	swift format lint --strict --parallel -r Sources Tests loadtest Package.swift

loadtest-release: deps
	$(RELEASE) --product hub-loadtest
	$(RELEASE) --product locationhub

# Repeatable figures, not times: they mean the same on a busy machine.
bench: DEPS := valgrind
bench: loadtest-release
	.build/release/hub-loadtest bench

# A quarter of an hour on a machine that does nothing else.
figures: loadtest-release
	loadtest/pinned.sh figures --json .build/speed.json --output loadtest/results/speed.md

growth: loadtest-release
	loadtest/pinned.sh growth --json .build/growth.json --html .build/growth.html

# A few minutes on a machine that does nothing else; with what several hubs cost, where `make crossing` has measured it.
capacity: loadtest-release
	loadtest/pinned.sh capacity --json .build/capacity.json --output loadtest/CAPACITY.md \
	  $(addprefix --crossing ,$(wildcard .build/crossing.json))

# Ten minutes on a machine that does nothing else. Python's `websockets` is that of `make test-cluster`.
crossing: DEPS := redis-server
crossing: loadtest-release
	@. Tests/Foreign/environment.sh; environment crossing "$$PWD/.build/cluster-venv" 'websockets>=13,<16'; \
	  "$$python" loadtest/crossing.py --hubs 1,2,3 --search --json .build/crossing.json \
	  --markdown loadtest/results/crossing.md

# What one token sends is measured with a core of the hub's own: who else is given it by the kernel is not the hub's work.
abuse: loadtest-release
	.build/release/hub-loadtest abuse --only outside
	loadtest/pinned.sh abuse --only inside

# Ten minutes: `make abuse-search SECONDS=600`. SEED=… for other changes.
abuse-search: loadtest-release
	.build/release/hub-loadtest abuse-search --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# SEED=… makes those again that a run before has printed.
torture: deps
	$(RELEASE) --product hub-torture
	$(RELEASE) --product locationhub
	$(SAME_ORDER) .build/release/hub-torture histories --count $(HISTORIES) $(if $(SEED),--seed $(SEED))
	.build/release/hub-torture kills --kills $(KILLS) $(if $(SEED),--seed $(SEED))
	swift build -c release --build-tests --scratch-path .build/release-tests -Xswiftc -enable-testing
	$(SAME_ORDER) CLUSTER_HISTORIES=$(HISTORIES) $(if $(SEED),CLUSTER_SEED=$(SEED)) swift test -c release --skip-build --scratch-path .build/release-tests \
	  -Xswiftc -enable-testing --filter '^ClusterTests\.(Fleet|Following|TripFeeds|Homes)Tests'
	PHONE_DAYS=$(PHONES) $(if $(SEED),PHONE_SEED=$(SEED)) swift test -c release --skip-build \
	  --scratch-path .build/release-tests -Xswiftc -enable-testing --filter '^DurabilityModelTests\.PhoneHistoryTests'

# Half a minute on a machine that does nothing else.
ingest: loadtest-release
	$(RELEASE) --product hub-microbench
	loadtest/ingest.sh $(DIR)

microbench: deps
	$(RELEASE) --product hub-microbench
	loadtest/microbench.sh

gps-score: release
	@loadtest/gps-score.py .build/release/locationhub ../shared

# The hub's port is 18080, the next four are taken as well.
test-monitoring: DEPS := prometheus redis-server
test-monitoring: release
	@deploy/check-monitoring.py .build/release/locationhub || [ $$? = 77 ]

fuzz: deps
	@for target in $(FUZZ_TARGETS); do Tests/Fuzz/run.sh $$target $(SECONDS) || exit 1; done

# Skips, and says so, where the suite is not beside the repository (../shared/tools/autobahn).
conformance conformance-full: deps
	$(RELEASE) --product hub-autobahn-server
	$(RELEASE) --product hub-autobahn-client
	Tests/Conformance/run.sh $(if $(findstring full,$@),full,quick)

sanitize: deps
	Tests/Sanitizers/run.sh address
	Tests/Sanitizers/run.sh thread

clean:
	rm -rf .build

# The system packages that building needs: said before they are installed, and only installed where they are missing.
deps:
	@command -v swift >/dev/null || { echo 'There is no swift on PATH: install a Swift 6.2 (or newer) toolchain from swift.org.'; exit 1; }
	@missing=(); \
	[ -e /usr/include/openssl/sha.h ] || missing+=(libssl-dev); \
	[ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev); \
	command -v pkg-config >/dev/null || missing+=(pkg-config); \
	command -v objcopy >/dev/null || missing+=(binutils); \
	for tool in $(DEPS); do command -v $$tool >/dev/null || missing+=($$tool); done; \
	if [ $${#missing[@]} -gt 0 ]; then \
	  echo "Installing the system packages that are missing: $${missing[*]}"; \
	  root=; [ "$$(id -u)" = 0 ] || root=sudo; \
	  $$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$${missing[@]}"; \
	fi
	@mkdir -p .build/link && echo '{ global: main; local: *; };' > .build/link/exports
	@archive=$$(ls /usr/lib/gcc/*/*/libstdc++.a 2>/dev/null | sort -V | tail -1); \
	[ -z "$$archive" ] || ln -sfn "$$archive" .build/link/libstdc++.a
