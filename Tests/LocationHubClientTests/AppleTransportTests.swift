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
    public struct CLLocationCoordinate2D { public let latitude, longitude: Double }
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
    let (file, folder) = (toolchain.file, toolchain.folder)
    for (name, text) in Self.stubs {
      let made = try toolchain.swiftc(
        ["-emit-module", "-module-name", name, "-o", folder.appending(path: "\(name).swiftmodule").path],
        [try file("\(name)-stub.swift", text)])
      #expect(made.isRight, "\(made.text)")
    }
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

  /// Type-checks a target with further files, as for an Apple system.
  private func check(
    _ toolchain: Toolchain, _ target: String, _ module: String, _ more: [String]
  ) throws -> Toolchain.Outcome {
    let folder = Toolchain.root.appending(path: "Sources/\(target)")
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter {
      $0.hasSuffix(".swift") && !$0.hasPrefix("Documentation.docc")
    }
    return try toolchain.swiftc(
      ["-typecheck", "-module-name", module, "-I", toolchain.folder.path, "-strict-memory-safety"],
      files.map { folder.appending(path: $0).path } + more)
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
