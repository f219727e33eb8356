// swift-tools-version: 6.2
import PackageDescription

// The dependency rules between these targets are drawn in README.md ("Tour of the source").
// No Swift packages: only the toolchain, two system libraries and system headers.

func tests(_ target: String, _ more: [Target.Dependency] = []) -> Target {
  .testTarget(name: target + "Tests", dependencies: [.byName(name: target), "TestSupport"] + more)
}

let package = Package(
  name: "location-hub",
  products: [
    .executable(name: "locationhub", targets: ["locationhub"]),
    .library(name: "LocationHubClient", targets: ["LocationHubClient"]),
  ],
  targets: [
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CLoadTest", path: "loadtest/CLoadTest"),
    .systemLibrary(
      name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

    // Bytes and values: no I/O, no clock, no randomness.
    .target(name: "Bytes"),
    .target(name: "Geo"),
    .target(name: "Messages", dependencies: ["Bytes", "Geo"]),
    .target(name: "HTTP", dependencies: ["Bytes"]),
    .target(name: "WebSocket", dependencies: ["Bytes", "HTTP", "COpenSSL", "CZlib"]),
    .target(name: "HubCore", dependencies: ["Messages", "Geo", "Bytes"]),
    .target(name: "Tokens", dependencies: ["Bytes", "Messages", "COpenSSL"]),

    // I/O.
    .target(name: "Transport", dependencies: ["Bytes", "CLinux", "COpenSSL"]),
    .target(name: "Journal", dependencies: ["Transport"]),

    .target(
      name: "Gateway",
      dependencies: ["Bytes", "HubCore", "Journal", "Tokens", "Transport", "WebSocket", "HTTP", "Messages", "Geo"]),
    .target(
      name: "LocationHubClient",
      dependencies: ["Bytes", "Transport", "WebSocket", "HTTP", "Tokens", "Messages", "Geo"]),
    .target(name: "Simulation", dependencies: ["Geo", "Messages"]),
    .executableTarget(
      name: "locationhub",
      dependencies: [
        "Gateway", "HubCore", "Journal", "LocationHubClient", "Simulation", "Tokens", "Transport", "Messages", "Geo",
        "Bytes", "CLinux",
      ]),

    // For tests and measurements only.
    .target(name: "HostileMessages", path: "loadtest/HostileMessages"),
    .target(name: "TestCertificates", dependencies: ["COpenSSL"], path: "Tests/TestCertificates"),

    .target(
      name: "LoadTestKit",
      dependencies: [
        "Bytes", "CLoadTest", "Gateway", "Geo", "Messages", "Simulation", "TestCertificates", "Tokens", "Transport",
        "WebSocket",
      ],
      path: "loadtest/LoadTestKit"),
    .executableTarget(
      name: "hub-loadtest", dependencies: ["LoadTestKit", "Transport", "WebSocket", "Gateway", "Bytes"],
      path: "loadtest/HubLoadTest"),
    .executableTarget(
      name: "hub-torture",
      dependencies: [
        "DurabilityModel", "LoadTestKit", "LocationHubClient", "HubCore", "Transport", "Messages", "Geo", "Bytes",
        "TestSupport",
      ],
      path: "loadtest/Torture"),
    .executableTarget(
      name: "hub-microbench",
      dependencies: ["HostileMessages", "HubCore", "Journal", "Transport", "WebSocket", "Messages", "Geo", "Bytes"],
      path: "loadtest/MicroBench"),
    .executableTarget(
      name: "autobahn-client", dependencies: ["LocationHubClient", "Transport", "WebSocket", "Bytes"],
      path: "Tests/Conformance/AutobahnClient"),

    // What tests of several targets share.
    .target(name: "TestSupport", dependencies: ["Geo"], path: "Tests/TestSupport"),
    .target(
      name: "JournalSupport", dependencies: ["Journal", "Transport", "TestSupport"], path: "Tests/JournalSupport"),
    .target(
      name: "DurabilityModel",
      dependencies: ["HubCore", "Journal", "Messages", "Geo", "Bytes", "Transport", "TestSupport", "JournalSupport"],
      path: "Tests/DurabilityModel"),
    tests("Bytes"),
    tests("Geo"),
    tests("Messages", ["Geo", "Bytes", "HostileMessages"]),
    tests("HTTP", ["Bytes"]),
    tests("WebSocket", ["Bytes", "HTTP"]),
    tests("HubCore", ["Messages", "Geo"]),
    tests("Tokens", ["Messages", "Bytes"]),
    tests("Transport", ["Bytes", "COpenSSL", "TestCertificates"]),
    tests("Journal", ["Transport", "JournalSupport"]),
    .testTarget(name: "DurabilityModelTests", dependencies: ["DurabilityModel"]),
    tests(
      "Gateway", ["HubCore", "LocationHubClient", "Tokens", "Messages", "Geo", "Bytes", "HTTP", "Transport"]),
    tests("LocationHubClient", ["Tokens", "Messages", "WebSocket", "Bytes", "Transport"]),
    tests("Simulation", ["Geo", "Messages"]),
    // Both executables are built, so that the tests can run them as processes.
    tests("LoadTestKit", ["Transport", "locationhub", "hub-loadtest"]),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "Gateway", "LocationHubClient", "Simulation", "Tokens", "HubCore", "Messages", "Geo", "Bytes", "Transport",
        "WebSocket", "TestSupport", "TestCertificates", "COpenSSL",
        "locationhub",  // built, so that tests can run it as a process
      ]),
  ],
  swiftLanguageModes: [.v6]
)
