// loadtest/CAPACITY.md, written from measured terms.

extension CapacityModel {
  package func markdown() -> String {
    let load = Load()
    return [head(load), table(load), growthText, termsTable, checkText].joined(separator: "\n\n") + "\n"
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
      on \(grouped(Int(needs.hubs))) hubs of \(grouped(Int(load.connectionsPerHub))) connections.
      """
  }

  private func table(_ load: Load) -> String {
    var rows = [
      "## How it depends on who follows whom", "",
      "| positions for each fix | for fixes | for positions | heartbeats | coming and going | cores in all | out |",
      "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for followers in [0.4, 1, 4] {
      var other = load
      other.followers = followers
      let needs = needs(other)
      let cells = [
        decimals(followers, 1), core(needs.fixCores), core(needs.deliveryCores), core(needs.heartbeatCores),
        core(needs.joiningCores), grouped(Int(needs.cores.rounded(.up))), gigabits(needs.networkOut),
      ]
      rows.append("| " + cells.joined(separator: " | ") + " |")
    }
    rows += [
      "",
      "0.4: two in five drivers are on a trip, with one rider each, and the other riders only have the app open. 4: all "
        + "riders follow somebody. The middle columns are cores at 100 %.",
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
    | CPU for heartbeats | silent sessions ÷ 30 s | \(micro(terms.heartbeat)) each |
    | CPU for coming and going | connections a second | \(micro(terms.connection)) each |
    | the same with more connections on a hub | log₂ connections | \(micro(growth(\.fix))) a fix and \
    \(micro(growth(\.fixAndPosition))) a fix with its position for each doubling |
    | memory | sessions | \(grouped(Int(terms.driverBytes))) B a driver with a trip, \(grouped(Int(terms.riderBytes))) B a \
    rider, \(grouped(Int(terms.idleBytes))) B a session that says nothing |
    | network | messages | \(grouped(Int(terms.fixBytes))) B a fix, \(grouped(Int(terms.positionBytes))) B a position, and \
    \(grouped(Int(CapacityModel.overheadBytes))) B for Ethernet, IP, TCP and its acknowledgements |
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

    What it leaves out: TLS (see [NOTES.md](NOTES.md)), the journal's disk, a backplane between hubs, and that network \
    cards and their interrupts take cores, too; loopback has none.
    """
  }

  private func size(_ index: Int) -> String { grouped(Int(terms.points[index].connections)) }
  private func micro(_ value: Double) -> String { decimals(value, 2) + " µs" }
  private func core(_ value: Double) -> String { decimals(value, value < 10 ? 1 : 0) }
  private func gibibytes(_ value: Double) -> String { decimals(value / 1_073_741_824, 1) + " GiB" }
  private func gigabits(_ value: Double) -> String { decimals(value / 1e9, 1) + " Gbit/s" }
  private func percent(_ value: Double) -> String { (value < 0 ? "" : "+") + decimals(value * 100, 0) + " %" }
}
