// What is for Apple systems alone cannot run here. At least it is type-checked: URLSession and FileManager against
// swift-corelibs-foundation, which has Apple's interface, and the rest against stubs, which let `canImport(Darwin)`
// hold.
import Foundation
import Testing

@Suite struct AppleTransportTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  /// Where this build's modules lie; nil where it lies elsewhere than SwiftPM puts it.
  private static let modules: URL? = {
    var folder = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    for _ in 0..<4 {
      folder.deleteLastPathComponent()
      let modules = folder.appending(path: "Modules")
      let one = modules.appending(path: "HubClientCore.swiftmodule")
      if FileManager.default.fileExists(atPath: one.path) { return modules }
    }
    return nil
  }()

  private static let stubs = [
    "Darwin": "@_exported import Glibc",
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
    .enabled(if: modules != nil, "needs the modules of a build by SwiftPM"))
  func typeCheck() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apple-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    func file(_ name: String, _ text: String) throws -> String {
      let file = folder.appending(path: name)
      try Data(text.utf8).write(to: file)
      return file.path
    }
    for (name, text) in Self.stubs {
      let made = try swiftc(
        ["-emit-module", "-module-name", name, "-o", folder.appending(path: "\(name).swiftmodule").path],
        [try file("\(name)-stub.swift", text)])
      #expect(made.isRight, "\(made.text)")
    }
    let missing = try file("Missing.swift", Self.missing)
    for (target, module, more) in [
      ("ClientCore", "HubClientCore", []), ("LocationHubClient", "LocationHubClient", [missing]),
    ] {
      let checked = try check(target, module, folder, more)
      #expect(checked.isRight, "\(checked.text)")
    }
    let mistake = try file(
      "Mistake.swift", "extension URLSessionRunner { var wrong: Int { FixStore.applicationSupport.anything } }")
    let found = try check("LocationHubClient", "LocationHubClient", folder, [missing, mistake])
    #expect(!found.isRight && found.text.contains("no member 'anything'"))
  }

  /// Type-checks a target with further files, as for an Apple system.
  private func check(
    _ target: String, _ module: String, _ stubs: URL, _ more: [String]
  ) throws -> (isRight: Bool, text: String) {
    let folder = Self.root.appending(path: "Sources/\(target)")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    let maps = ["CLinux", "COpenSSL", "CZlib"].flatMap {
      ["-Xcc", "-fmodule-map-file=\(Self.root.path)/Sources/\($0)/module.modulemap"]
    }
    return try swiftc(
      ["-typecheck", "-module-name", module, "-I", stubs.path, "-I", try #require(Self.modules).path]
        + ["-strict-memory-safety", "-warnings-as-errors", "-package-name", Self.package] + maps,
      files.map { folder.appending(path: $0).path } + more)
  }

  private func swiftc(_ options: [String], _ files: [String]) throws -> (isRight: Bool, text: String) {
    let process = Process()
    let errors = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    let features = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"].flatMap {
      ["-enable-upcoming-feature", $0]
    }
    process.arguments = ["swiftc", "-swift-version", "6"] + options + features + files
    process.standardError = errors
    try process.run()
    let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus == 0, text)
  }

  /// What SwiftPM calls the package to the compiler: its folder's name.
  private static var package: String {
    root.lastPathComponent.lowercased().map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined()
  }

  @Test("the systems that it is for are the same in the manifest, the README and the documentation")
  func platforms() throws {
    func text(_ path: String) throws -> String {
      try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
    }
    let manifest = try text("Package.swift")
    for platform in ["iOS", "macOS", "tvOS", "watchOS", "visionOS"] { #expect(manifest.contains(".\(platform)(.v26)")) }
    #expect(try text("README.md").contains("for iOS and macOS 26"))
    #expect(
      try text("Sources/LocationHubClient/Documentation.docc/LocationHubClient.md").contains(
        "iOS, macOS, tvOS, watchOS and visionOS 26"))
  }
}
