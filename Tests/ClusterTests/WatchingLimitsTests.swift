// What happens at the limits of areas over several hubs, and which cells are asked for.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCluster

@Suite struct WatchingLimitsTests {
  private let center = Coordinate(latitude: 48.1, longitude: 11.5)!
  private let box = BoundingBox(south: 48.07, west: 11.45, north: 48.13, east: 11.55)!

  private func world(drivers: Int, limits: ClusterLimits, hubLimits: HubLimits = HubLimits()) -> ClusterWorld {
    let world = ClusterWorld(limits: limits, hubLimits: hubLimits)
    for driver in 0..<drivers {
      world.connect("d\(driver)", at: "a", slot: UInt32(driver + 1))
      let place = Coordinate(latitude: 48.08 + Double(driver) * 1e-4, longitude: 11.5)!
      world.fix(at: place, at: "a", slot: UInt32(driver + 1))
    }
    world.run(seconds: 1)
    return world
  }

  @Test("A hub that watches as many cells of another as it may gets no further one until it lets go of some")
  func cellsPerPeer() {
    var limits = ClusterLimits()
    limits.cellsPerPeer = 1
    let world = world(drivers: 3, limits: limits)
    let far = world.map(
      .ops, .area(GeohashCell(Coordinate(latitude: 20, longitude: 20)!, precision: 5)), at: "b", slot: 70)
    world.run(seconds: 2)
    let map = world.map(.ops, .area(GeohashCell(center, precision: 3)), at: "b", slot: 71)
    world.run(seconds: 5)
    #expect(map.drivers.isEmpty && world["a"].node.node.counters.cellsRefused > 0)
    world["b"].inputs += far.leave()
    world.run(seconds: 3)
    #expect(map.drivers.count == 3)
  }

  @Test("More drivers than a record holds leave a cell within one tick")
  func manyDepartures() {
    var limits = ClusterLimits()
    limits.driversPerRecord = 7
    let world = world(drivers: 20, limits: limits)
    let map = world.map(.ops, .box(box), at: "b", slot: 70)
    world.run(seconds: 3)
    #expect(map.drivers.count == 20)
    for driver in 0..<20 {
      world.fix(at: Coordinate(latitude: 20, longitude: 20)!, at: "a", slot: UInt32(driver + 1))
    }
    for _ in 0..<5 {
      world.run(seconds: 20)
      for driver in 0..<20 {
        world.fix(at: Coordinate(latitude: 20, longitude: 20)!, at: "a", slot: UInt32(driver + 1))
      }
    }
    world.run(seconds: 3)
    #expect(map.drivers.isEmpty)
  }

  @Test("Areas' updates that wait past their limit are dropped, and come when the bus takes it")
  func waitingAreaBytes() {
    var limits = ClusterLimits()
    (limits.waitingAreaBytes, limits.driversPerRecord, limits.frameBytes) = (2000, 7, 200)
    let world = world(drivers: 40, limits: limits)
    let map = world.map(.ops, .box(box), at: "b", slot: 70)
    world.run(seconds: 3)
    #expect(map.drivers.count == 40)
    world.engine.isolated = ["a"]
    for round in 0..<4 {
      for driver in 0..<40 {
        let place = Coordinate(latitude: 48.08 + Double(driver) * 1e-4, longitude: 11.5 + Double(round) * 1e-4)!
        world.fix(at: place, at: "a", slot: UInt32(driver + 1))
      }
      world.run(seconds: 1)
      #expect(world["a"].node.node.context.peers.allSatisfy { $0.areaBytes <= 2 * 2000 })
    }
    #expect(world["a"].node.node.counters.overflows > 0)
    world.engine.isolated = []
    world.run(seconds: 4)
    #expect(map.drivers.count == 40)
    #expect(map.drivers.values.allSatisfy { $0.driver.coordinate.longitude > 11.5002 })
  }

  @Test("A table of guests that is full shows no further driver, and says so; it has room again when some have left")
  func guests() {
    var hubLimits = HubLimits()
    hubLimits.guests = 5
    let world = world(drivers: 8, limits: ClusterLimits(), hubLimits: hubLimits)
    let map = world.map(.ops, .box(box), at: "b", slot: 70)
    world.run(seconds: 3)
    #expect(map.drivers.count == 5)
    #expect(world["b"].hub.hub.shownCounters().hits(.guests) > 0)
    #expect(world["b"].hub.hub.shownCounters().entries(.guests) == 5)
    world["b"].inputs += map.leave()
    world.run(seconds: 2)
    #expect(world["b"].hub.hub.shownCounters().entries(.guests) == 0)
  }

  @Test("The drivers of a hub that is silent stay on the maps for guestTime, and no longer")
  func silent() {
    var limits = ClusterLimits()
    limits.guestTime = 4_000_000_000
    let world = world(drivers: 5, limits: limits)
    let map = world.map(.ops, .box(box), at: "b", slot: 70)
    world.run(seconds: 3)
    #expect(map.drivers.count == 5)
    world.engine.isolated = ["a"]
    world.run(seconds: 3.5)
    #expect(map.drivers.count == 5)
    world.run(seconds: 1.5)
    #expect(map.drivers.isEmpty && world["b"].hub.hub.shownCounters().entries(.guests) == 0)
  }

  @Test("Cells one in the other are asked for once; when the outer one goes the inner one continues")
  func nested() {
    let world = world(drivers: 5, limits: ClusterLimits())
    let inner = world.map(.rider, .area(GeohashCell(center, precision: 5)), at: "b", slot: 70)
    world.run(seconds: 3)
    #expect(world["b"].node.node.counters.cellsAsked == 1)
    let outer = world.map(.ops, .area(GeohashCell(center, precision: 3)), at: "b", slot: 71)
    world.run(seconds: 3)
    #expect(world["b"].node.node.counters.cellsAsked == 1 && world["a"].node.node.counters.cellsWatched == 1)
    #expect(outer.drivers.count == 5)
    let shown = inner.drivers.count
    #expect(shown > 0)
    world["b"].inputs += outer.leave()
    world.run(seconds: 3)
    #expect(world["b"].node.node.counters.cellsAsked == 1 && inner.drivers.count == shown)
    #expect(inner.departures == [])
    world["b"].inputs += inner.leave()
    world.run(seconds: 3)
    #expect(world["a"].node.node.counters.cellsWatched == 0 && world["b"].node.node.counters.cellsAsked == 0)
  }

  @Test("The cells that are asked for are those that lie in no other one, whichever come and go in a turn")
  func outermost() {
    let world = ClusterWorld(["a", "b"])
    let node = world["a"].node
    var (watched, random): (Set<GeohashCell>, _) = ([], SplitMix64(seed: 4))
    func encloses(_ outer: GeohashCell, _ inner: GeohashCell) -> Bool {
      outer.precision < inner.precision && inner.bits >> UInt64(5 * (inner.precision - outer.precision)) == outer.bits
    }
    for _ in 0..<300 {
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let (north, east) = (Double.random(in: 0..<0.3, using: &random), Double.random(in: 0..<0.6, using: &random))
        let place = Coordinate(latitude: 48 + north, longitude: 11 + east)!
        let cell = GeohashCell(place, precision: Int.random(in: 2...5, using: &random))
        if watched.remove(cell) != nil {
          node.node.watching.unwatch(cell)
        } else {
          watched.insert(cell)
          node.node.watching.watch(cell)
        }
      }
      node.node.watching.ask()
      #expect(node.node.watching.asked == watched.filter { inner in !watched.contains { encloses($0, inner) } })
    }
    #expect(watched.count > 20)
  }
}
