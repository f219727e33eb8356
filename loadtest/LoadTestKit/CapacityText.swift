// loadtest/CAPACITY.md, written from measured terms.

extension CapacityModel {
  package func markdown() -> String {
    let load = Load()
    return [head(load), table(load), growthText, ownText, termsTable, checkText].joined(separator: "\n\n") + "\n"
  }

  private func head(_ load: Load) -> String {
    let needs = needs(load)
    return """
      # What a large city needs

      Written by `make capacity` from costs measured on this machine; none of it is typed by hand.

          \(terms.machine)

      \(grouped(Int(load.drivers))) drivers send \(grouped(Int((load.fixesPerSecond * 60).rounded()))) fixes a minute, \
      each fix goes to \(decimals(load.followers, 0)) of \(grouped(Int(load.riders))) riders: \
      **\(grouped(Int(needs.cores.rounded(.up)))) cores** of this kind (\(decimals(load.busy * 100, 0)) % busy), \
      **\(gibibytes(needs.memoryBytes))** of memory, \(gigabits(needs.networkIn)) in and \(gigabits(needs.networkOut)) out, \
      on \(grouped(Int(needs.hubs))) hubs of \(grouped(Int(load.connectionsPerHub))) connections. That is for each of them \
      \(decimals(needs.cores / needs.hubs, 1)) cores, \(gibibytes(needs.memoryBytes / needs.hubs)), \
      \(gigabits(needs.networkIn / needs.hubs)) in and \(gigabits(needs.networkOut / needs.hubs)) out, and \
      \(decimals(needs.disk / needs.hubs / 1e6, 1)) MB/s of journal, \
      \(decimals(needs.disk / needs.hubs * 86_400 / 1e12, 2)) TB a day while fixes are kept. One rider in \
      \(decimals(1 / load.watching, 0)) looks at a map of free drivers meanwhile, which makes \
      \(gigabits(needs.networkOutForMaps)) of what goes out, in JSON and not compressed: compressed it is a quarter, in binary \
      a sixth. All sessions have heartbeats; phones connect anew twice an hour.
      """
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
        + "\(decimals(load.busy * 100, 0)) %.",
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
    | CPU for storing | fixes a second | \(micro(terms.stored)) each |
    | CPU for maps | riders who look at one | \(micro(terms.mapUpdate)) each a second, with 100 drivers on it of whom a third has moved |
    | CPU for heartbeats | silent sessions ÷ 30 s | \(micro(terms.heartbeat)) each |
    | CPU for coming and going | connections a second | \(micro(terms.connection)) each |
    | the same with more connections on a hub | log₂ connections | \(micro(growth(\.fix))) a fix and \
    \(micro(growth(\.fixAndPosition))) a fix with its position for each doubling: beyond \(size(2)) connections this is \
    extrapolated |
    | memory | sessions | \(grouped(Int(terms.driverBytes))) B a driver with a trip, \(grouped(Int(terms.riderBytes))) B a \
    rider, \(grouped(Int(terms.idleBytes))) B a session that says nothing |
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

    The growth is taken from the first two sizes. For the third, with \(size(2)) connections, the model says \
    \(micro(cost(\.fix, connections: terms.points[2].connections))) a fix and \
    \(micro(cost(\.fixAndPosition, connections: terms.points[2].connections))) with its position: \
    \(percent(error(\.fix))) and \(percent(error(\.fixAndPosition))) off what was measured.

    What it leaves out: TLS (a half more CPU a message, a third of a millisecond a handshake, 15 KB a session: \
    [NOTES.md](NOTES.md)), a backplane between hubs, that a session which changes its network may come to another hub, and \
    that network cards and their interrupts take cores, too; loopback has none. What would make it less: the binary \
    protocol, in which a position has 24 bytes instead of \(grouped(Int(terms.positionBytes))) and a map a sixth of its \
    bytes, and sampling, by which drivers whom nobody follows send less often.
    """
  }

  private func size(_ index: Int) -> String { grouped(Int(terms.points[index].connections)) }
  private func micro(_ value: Double) -> String { decimals(value, 2) + " µs" }
  private func core(_ value: Double) -> String { decimals(value, value < 10 ? 1 : 0) }
  private func gibibytes(_ value: Double) -> String { decimals(value / 1_073_741_824, 1) + " GiB" }
  private func gigabits(_ value: Double) -> String { decimals(value / 1e9, 1) + " Gbit/s" }
  private func percent(_ value: Double) -> String { (value < 0 ? "" : "+") + decimals(value * 100, 0) + " %" }
}
