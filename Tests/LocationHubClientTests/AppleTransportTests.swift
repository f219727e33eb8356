// The library for Apple systems cannot run here. At least all of its targets are type-checked: URLSession and
// FileManager against swift-corelibs-foundation, which has Apple's interface, and the rest against stubs, which let
// `canImport(Darwin)` hold. How Apple's headers declare what they declare is not found out that way.
import Foundation
import Testing

@Suite struct AppleTransportTests {
  /// What Apple's C library has of what the library uses: a name that only Linux has is not found.
  private static let darwin = [
    "func": [
      "free", "realloc", "sin", "cos", "asin", "atan2", "inet_pton", "strerror_r", "open", "write",
    ],
    "struct": ["in6_addr"], "var": ["AF_INET6"],
  ]
  private static let stubs = [
    "Darwin": darwin.flatMap { kind, names in names.map { "@_exported public import \(kind) Glibc.\($0)" } }
      .joined(separator: "\n"),
    "CoreLocation": """
    public import Foundation
    public final class CLLocationManager: NSObject { public var desiredAccuracy = 0.0, distanceFilter = 0.0 }
    public struct CLLocationCoordinate2D {
      public var latitude, longitude: Double
      public init(latitude: Double, longitude: Double) { (self.latitude, self.longitude) = (latitude, longitude) }
    }
    public final class CLLocation: NSObject {
      public let coordinate = CLLocationCoordinate2D(latitude: 0, longitude: 0)
      public let timestamp = Date()
      public let horizontalAccuracy = 0.0, verticalAccuracy = 0.0, ellipsoidalAltitude = 0.0
      public let course = 0.0, courseAccuracy = 0.0, speed = 0.0, speedAccuracy = 0.0
    }
    """,
  ]
  /// What Apple's Foundation has and the other one lacks.
  private static let missing = """
    import Foundation
    extension URL { static var applicationSupportDirectory: URL { URL(filePath: "/") } }
    """

  @Test(
    "the library for Apple systems is right as far as types go, and a mistake in it would be found",
    .enabled(if: Toolchain.modules != nil, "needs the modules of a build by SwiftPM"))
  func typeCheck() throws {
    let toolchain = try Toolchain()
    defer { toolchain.end() }
    let file = toolchain.file
    try makeStubs(toolchain)
    let missing = try file("Missing.swift", Self.missing)
    for target in ["Bytes", "Geo", "Messages", "HTTP", "WebSocket", "ClientCore"] {
      let checked = try check(toolchain, target, "Hub" + target, [])
      #expect(checked.isRight, "\(checked.text)")
    }
    let checked = try check(toolchain, "LocationHubClient", "LocationHubClient", [missing])
    #expect(checked.isRight, "\(checked.text)")
    let linux = try file("Linux.swift", "import Darwin\nlet pages = MADV_HUGEPAGE")
    let onlyLinux = try check(toolchain, "Bytes", "HubBytes", [linux])
    #expect(!onlyLinux.isRight && onlyLinux.text.contains("cannot find 'MADV_HUGEPAGE'"))
    let mistake = try file(
      "Mistake.swift", "extension URLSessionRunner { var wrong: Int { FixStore.applicationSupport.anything } }")
    let found = try check(toolchain, "LocationHubClient", "LocationHubClient", [missing, mistake])
    #expect(!found.isRight && found.text.contains("no member 'anything'"))
  }

  private func makeStubs(_ toolchain: Toolchain) throws {
    for (name, text) in Self.stubs {
      let module = toolchain.folder.appending(path: "\(name).swiftmodule").path
      let made = try toolchain.swiftc(
        ["-emit-module", "-module-name", name, "-o", module], [try toolchain.file("\(name)-stub.swift", text)])
      #expect(made.isRight, "\(made.text)")
    }
  }

  /// Type-checks a target with further files, as for an Apple system.
  private func check(
    _ toolchain: Toolchain, _ target: String, _ module: String, _ more: [String], _ mode: [String] = ["-typecheck"]
  ) throws -> Toolchain.Outcome {
    let folder = Toolchain.root.appending(path: "Sources/\(target)")
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
      $0.hasSuffix(".swift") && !$0.hasPrefix("Documentation.docc")
    }
    return try toolchain.swiftc(
      mode + ["-module-name", module, "-I", toolchain.folder.path, "-strict-memory-safety"],
      files.map { folder.appending(path: $0).path } + more)
  }

  /// A driver as the specification of this library has it, within what an app has around that.
  private static let sample = """
    import CoreLocation
    import Foundation
    import LocationHubClient

    struct Ride { let id: TripID }
    struct API { func hubToken(_ need: TokenNeed) async throws -> String { "" } }
    let api = API()

    @MainActor final class Driver {
      let manager = CLLocationManager()
      let hub: DriverHub
      var ride: Ride?

      init() throws {
        let hub = try DriverHub(
          URL(string: "wss://hub.example/v1/ws")!, tokens: TokenSource { need in try await api.hubToken(need) })
        self.hub = hub
        hub.start()
        Task { for await wish in hub.samplingAdvice {
          manager.desiredAccuracy = wish.accuracy; manager.distanceFilter = wish.distance
        } }
      }
      func locationManager(_ m: CLLocationManager, didUpdateLocations places: [CLLocation]) {
        for place in places { hub.send(Fix(place), trip: ride?.id) }
      }
      func arrived(_ ride: Ride) async throws {
        try await hub.move(ride.id, to: .arrivedPickup, expecting: .driverEnRoute)
        let since: Date? = hub.backlog.current.oldest?.date
        _ = since
      }
    }

    func share(_ url: URL, _ trip: TripID) async throws(HubError) -> [Share] {
      let rider = try RiderHub(url, tokens: .fixed(""))
      return [try await rider.share(trip), try await rider.share(trip, until: Date())]
    }

    func book(_ rider: RiderHub, from place: CLLocation) async -> String? {
      guard let here = Coordinate(place.coordinate) else { return nil }
      do {
        try await rider.request("T1", from: here)
        for await event in rider.trip("T1") {
          if case .position(let position) = event { _ = CLLocationCoordinate2D(position.coordinate).latitude }
        }
        for share in try await share(URL(filePath: "/"), "T1") { try await rider.revoke(share.id, of: "T1") }
        rider.networkChanged()
      } catch {
        return (error as (any LocalizedError)?)?.errorDescription ?? error.localizedDescription
      }
      return nil
    }
    """

  @Test(
    "the driver of the specification compiles as it stands, for Apple systems",
    .enabled(if: Toolchain.modules != nil, "needs the modules of a build by SwiftPM"))
  func specification() throws {
    let toolchain = try Toolchain()
    defer { toolchain.end() }
    try makeStubs(toolchain)
    let missing = try toolchain.file("Missing.swift", Self.missing)
    let module = try check(
      toolchain, "LocationHubClient", "LocationHubClient", [missing],
      ["-emit-module", "-o", toolchain.folder.appending(path: "LocationHubClient.swiftmodule").path])
    #expect(module.isRight, "\(module.text)")
    let sample = try toolchain.file("Sample.swift", Self.sample)
    let checked = try toolchain.swiftc(["-typecheck", "-parse-as-library", "-I", toolchain.folder.path], [sample])
    #expect(checked.isRight, "\(checked.text)")
  }

  @Test("the systems that it is for are the same in the manifest, the README and the documentation")
  func platforms() throws {
    func text(_ path: String) throws -> String {
      try String(contentsOf: Toolchain.root.appending(path: path), encoding: .utf8)
    }
    let manifest = try text("Package.swift")
    for platform in ["iOS", "macOS", "tvOS", "watchOS", "visionOS"] { #expect(manifest.contains(".\(platform)(.v26)")) }
    #expect(try text("README.md").contains("for iOS and macOS 26"))
    #expect(
      try text("Sources/LocationHubClient/Documentation.docc/LocationHubClient.md").contains(
        "iOS, macOS, tvOS, watchOS and visionOS 26"))
  }

  @Test("no target of this package has a name that another package may have, too")
  func names() throws {
    let manifest = try String(contentsOf: Toolchain.root.appending(path: "Package.swift"), encoding: .utf8)
    let names = manifest.matches(of: /name: "([^"]+)"/).map { String($0.1) }.filter { !$0.hasSuffix("Tests") }
    #expect(names.count > 20)
    for name in names where !["location-hub", "locationhub", "LocationHubClient"].contains(name) {
      #expect(name.hasPrefix("Hub") || name.hasPrefix("CHub") || name.hasPrefix("hub-"), "\(name)")
    }
  }
}
