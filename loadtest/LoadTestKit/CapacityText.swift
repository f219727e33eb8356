// loadtest/CAPACITY.md, written from measured terms.

extension CapacityModel {
  package func markdown() -> String {
    let load = Load()
    return [head(load), doubtsText, table(load), growthText, ownText, termsTable, checkText, hubsText].compactMap { $0 }
      .joined(
        separator: "\n\n") + "\n"
  }

  private func head(_ load: Load) -> String {
    let needs = needs(load)
    return """
      # What a large city needs

      Written by `make capacity` from costs measured on this machine; none of it is typed by hand.

          \(terms.machine)

      \(grouped(Int(load.drivers))) drivers send \(grouped(Int((load.fixesPerSecond * 60).rounded()))) fixes a minute, \
      each fix goes to \(decimals(load.followers, 0)) of \(grouped(Int(load.riders))) riders: \
      **\(grouped(Int(needs.cores.rounded(.up)))) cores** of this kind (rounded up; \(decimals(load.busy * 100, 0)) % busy), \
      **\(gibibytes(needs.memoryBytes))** of memory, \(gigabits(needs.networkIn)) in and \(gigabits(needs.networkOut)) out, \
      on \(grouped(Int(needs.hubs))) hubs (rounded up) of \(grouped(Int(load.connectionsPerHub))) connections. \
      That is for each of them \
      \(decimals(needs.cores / needs.hubs, 1)) cores, \(gibibytes(needs.memoryBytes / needs.hubs)), \
      \(gigabits(needs.networkIn / needs.hubs)) in and \(gigabits(needs.networkOut / needs.hubs)) out, and \
      \(decimals(needs.disk / needs.hubs / 1e6, 1)) MB/s of journal, \
      \(decimals(needs.disk / needs.hubs * 86_400 / 1e12, 2)) TB a day while fixes are kept. One rider in \
      \(decimals(1 / load.watching, 0)) looks at a map of free drivers meanwhile, which makes \
      \(gigabits(needs.networkOutForMaps)) of what goes out, in JSON and not compressed: compressed it is a quarter, in binary \
      a sixth. All sessions have heartbeats; phones connect anew twice an hour.\(crossing(needs))
      """
  }

  /// Nil where all runs count.
  private var doubtsText: String? {
    guard !terms.doubts.isEmpty else { return nil }
    return "**Not to be trusted**: the load itself was the limit in runs that this is made of.\n\n"
      + terms.doubts.map { "- \($0)" }.joined(separator: "\n")
  }

  private func table(_ load: Load) -> String {
    var rows = [
      "## How it depends on who follows whom", "",
      "| positions for each fix | for fixes | for positions | maps | heartbeats | coming and going | cores in all | out |",
      "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for followers in [0.4, 1, 4] {
      var other = load
      other.followers = followers
      let needs = needs(other)
      let cells = [
        decimals(followers, 1), core(needs.fixCores), core(needs.deliveryCores), core(needs.mapCores),
        core(needs.heartbeatCores), core(needs.joiningCores), grouped(Int(needs.cores.rounded(.up))),
        gigabits(needs.networkOut),
      ]
      rows.append("| " + cells.joined(separator: " | ") + " |")
    }
    rows += [
      "",
      "0.4: two in five drivers are on a trip, with one rider each, and the other riders only have the app open. 4: all "
        + "riders follow somebody. The middle columns are cores at 100 %; \"cores in all\" are busy to "
        + "\(decimals(load.busy * 100, 0)) %, and rounded up.",
    ]
    return rows.joined(separator: "\n")
  }

  private var growthText: String {
    """
    ## How each term grows

    | term | grows with | here |
    | --- | --- | --- |
    | CPU for fixes | fixes a second | \(micro(terms.points[1].fix)) each at \(size(1)) connections |
    | CPU for the first follower | fixes that somebody follows | \(micro(terms.points[1].fixAndPosition - terms.points[1].fix)) each |
    | CPU for more followers | positions a second | \(micro(terms.delivery)) each |
    | CPU for storing | fixes a second | \(terms.stored > 0 ? micro(terms.stored) + " each" : "less than this measurement tells") |
    | CPU for maps | riders who look at one | \(micro(terms.mapUpdate)) each a second, with 100 drivers on it of whom a third has moved |
    | CPU for heartbeats | silent sessions ÷ 30 s | \(micro(terms.heartbeat)) each |
    | CPU for coming and going | connections a second | \(micro(terms.connection)) each |
    | the same with more connections on a hub | log₂ connections | \(micro(growth(\.fix))) a fix and \
    \(micro(growth(\.fixAndPosition))) a fix with its position for each doubling beyond \(size(2)) connections, on top of the \
    largest cost measured: extrapolated |
    | memory | sessions | \(grouped(Int(terms.driverBytes))) B a driver with a trip, \(grouped(Int(terms.riderBytes))) B a \
    rider, \(grouped(Int(terms.idleBytes))) B a session that says nothing: what one more takes, of \(size(2)) sessions \
    instead of \(size(1)). What a hub takes by itself, some 12 MB, is not in it |
    | network | messages | \(grouped(Int(terms.fixBytes))) B a fix, \(grouped(Int(terms.positionBytes))) B a position, \
    \(grouped(Int(terms.mapBytes))) B an update of a map, all in JSON without compression, and \
    \(grouped(Int(CapacityModel.overheadBytes))) B a segment for Ethernet, IP, TCP and its acknowledgements |
    | disk | fixes | \(grouped(Int(terms.storedBytes))) B each |
    """
  }

  /// What a reader does with it.
  private var ownText: String {
    var small = Load()
    (small.drivers, small.riders, small.followers) = (5000, 20_000, 1)
    (small.fixesPerSecond, small.connectionsPerHub) = (1000, 25_000)
    let needs = needs(small)
    let fix = cost(\.fix, connections: small.connectionsPerHub) + terms.stored
    let first = max(terms.delivery, cost(\.fixAndPosition, connections: small.connectionsPerHub) - fix + terms.stored)
    return """
      ## For a deployment of your own

          cores = (fixes/s × \(micro(fix)) + positions/s × \(micro(first)) + riders on a map × \(micro(terms.mapUpdate))
                   + silent sessions ÷ 30 × \(micro(terms.heartbeat)) + connections/s × \(micro(terms.connection))) \
      ÷ 1 s ÷ \(decimals(small.busy, 1))

      For instance \(grouped(Int(small.drivers))) drivers with a fix each 5 s, a follower each, and \
      \(grouped(Int(small.riders))) riders: \(decimals(needs.cores, 2)) cores, \
      \(decimals(needs.memoryBytes / 1_048_576, 0)) MiB beside the hub's own, \
      \(decimals(needs.networkIn / 1e6, 1)) Mbit/s in and \(decimals(needs.networkOut / 1e6, 1)) Mbit/s out. Measure on a \
      machine of yours: `make capacity` takes a few minutes there, and this text is written anew.
      """
  }

  private var termsTable: String {
    var rows = [
      "## Measured", "", "| connections | µs for a fix | µs for a fix and its position |", "| --- | --- | --- |",
    ]
    for point in terms.points {
      rows.append(
        "| \(grouped(Int(point.connections))) | \(decimals(point.fix, 1)) | \(decimals(point.fixAndPosition, 1)) |")
    }
    return rows.joined(separator: "\n")
  }

  private var checkText: String {
    """
    ## How far off it is

    A line through the first two sizes, a + b log₂ n, is \(percent(error(\.fix))) off what was measured at the third, with \
    \(size(2)) connections, for a fix, and \(percent(error(\.fixAndPosition))) for a fix with its position. So the sizes differ \
    by chance as much as by growth, and the model takes the dearer side: never less than the most that was measured at any \
    size up to the next larger one, and beyond \(size(2)) connections the steepest growth between two sizes on top of that. At \
    \(grouped(Int(Load().connectionsPerHub))) connections it says \
    \(micro(cost(\.fix, connections: Load().connectionsPerHub))) a fix and \
    \(micro(cost(\.fixAndPosition, connections: Load().connectionsPerHub))) with its position.

    What it leaves out: TLS (some 9 µs more for a message in and one out, a third \
    of a millisecond a handshake, 15 KB a session: [NOTES.md](NOTES.md#tls)), \
    \(terms.crossing == nil ? "what goes between hubs, " : "")that a session which changes its network may come to another hub, and \
    that network cards and their interrupts take cores, too; loopback has none. What would make it less: the binary \
    protocol, in which a position has 24 bytes instead of \(grouped(Int(terms.positionBytes))) and a map a sixth of its \
    bytes, and sampling, by which drivers whom nobody follows send less often.
    """
  }

  private func crossing(_ needs: Needs) -> String {
    guard terms.crossing != nil else { return "" }
    return """
       What goes between the hubs takes \(core(needs.crossingCores)) cores of theirs (at 100 %) and \
      \(core(needs.engineCores)) of the engine's; each rider asks once an hour who is near, and all hubs look.
      """
  }

  /// What several hubs cost more, and how far off that is; nil where it was not measured.
  private var hubsText: String? {
    guard let crossing = terms.crossing else { return nil }
    var rows = [
      "## Several hubs", "",
      "A position that goes to another hub takes \(micro(crossing.position)) of both hubs and \(grouped(Int(crossing.bytes))) B "
        + "on the bus, once for each other hub at which somebody follows, whatever their number: "
        + "(h − 1) × (1 − (1 − 1/h)^followers) of h hubs. A frame takes \(micro(crossing.frame)) of both hubs and "
        + "\(micro(crossing.engineFrame)) of the engine, and has a position or more: a hub sends another one at most "
        + "\(grouped(Int(crossing.framesPerSecond))) a second, and all others together \(grouped(Int(CapacityModel.framesOfHub))), "
        + "where they are more than three. A question who is near takes \(micro(crossing.search)) at each hub.", "",
      "Drivers with a rider each, spread evenly over the hubs of one machine (`loadtest/crossing.py`):", "",
      "| hubs | fixes/s | connections | cores | the model says | | the engine's | the model says |",
      "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for check in crossing.checks {
      let said = expected(check)
      let cells = [
        decimals(check.hubs, 0), grouped(Int(check.fixesPerSecond)), grouped(Int(check.connections)),
        decimals(check.cores, 3), decimals(said.cores, 3), percent(said.cores / check.cores - 1),
        decimals(check.engineCores, 3), decimals(said.engineCores, 3),
      ]
      rows.append("| " + cells.joined(separator: " | ") + " |")
    }
    return rows.joined(separator: "\n")
  }

  private func size(_ index: Int) -> String { grouped(Int(terms.points[index].connections)) }
  private func micro(_ value: Double) -> String { decimals(value, 2) + " µs" }
  private func core(_ value: Double) -> String { decimals(value, value < 10 ? 1 : 0) }
  private func gibibytes(_ value: Double) -> String { decimals(value / 1_073_741_824, 1) + " GiB" }
  private func gigabits(_ value: Double) -> String { decimals(value / 1e9, 1) + " Gbit/s" }
  private func percent(_ value: Double) -> String { (value < 0 ? "" : "+") + decimals(value * 100, 0) + " %" }
}
