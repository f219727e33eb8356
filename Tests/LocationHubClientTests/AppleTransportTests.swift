// The transport for Apple systems cannot run here. At least it is type-checked: against swift-corelibs-foundation, whose
// URLSession has Apple's interface.
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

  @Test(
    "URLSessionRunner.swift is right as far as types go",
    .enabled(if: modules != nil, "needs the modules of a build by SwiftPM"))
  func typeCheck() throws {
    let folder = Self.root.appending(path: "Sources/LocationHubClient")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    #expect(files.contains("URLSessionRunner.swift"))
    let maps = ["CLinux", "COpenSSL", "CZlib"].flatMap {
      ["-Xcc", "-fmodule-map-file=\(Self.root.path)/Sources/\($0)/module.modulemap"]
    }
    let features = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"].flatMap {
      ["-enable-upcoming-feature", $0]
    }
    let process = Process()
    let errors = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      [
        "swiftc", "-typecheck", "-swift-version", "6", "-module-name", "LocationHubClient", "-D",
        "CHECKS_APPLE_TRANSPORT",
      ]
      + ["-strict-memory-safety", "-warnings-as-errors", "-I", try #require(Self.modules).path]
      + ["-package-name", Self.package] + maps + features + files.map { folder.appending(path: $0).path }
    process.standardError = errors
    try process.run()
    let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(text)")
  }

  /// What SwiftPM calls the package to the compiler: its folder's name.
  private static var package: String {
    root.lastPathComponent.lowercased().map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined()
  }
}
