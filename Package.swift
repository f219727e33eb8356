// swift-tools-version: 6.2
import PackageDescription

// The dependency rules between these targets are drawn in CONTRIBUTING.md ("Targets").
// No Swift packages: only the toolchain, two system libraries and system headers.
//
// Module names begin with "Hub" ("CHub" for C), since they must differ from every module of a package graph that this
// package is part of; the folders are called by the rest of the name.

/// A module of the hub: `Sources/Geo` is `HubGeo`.
func hub(_ folder: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: "Hub" + folder, dependencies: dependencies, path: "Sources/" + folder)
}

/// What only tests and measurements use.
func support(_ name: String, in folder: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .target(name: "Hub" + name, dependencies: dependencies, path: folder + "/" + name)
}

/// Tests of a module in the folder that mirrors its own: `Tests/GeoTests` tests `HubGeo`.
func tests(_ folder: String, of module: String? = nil, _ more: [Target.Dependency] = []) -> Target {
  .testTarget(name: folder + "Tests", dependencies: [.byName(name: module ?? "Hub" + folder), "HubTestSupport"] + more)
}

/// Optimises everything but tests and load generators in debug builds: `make test` sets it, for its tests to take less
/// time. Only on demand, since nobody can depend on a version of a package with unsafe flags. Whole modules, which is
/// faster to build than file by file.
let isOptimised = Context.environment["HUB_OPTIMISED"] != nil

let package = Package(
  name: "location-hub",
  // The client's, for which alone Apple systems count; the hub is for Linux.
  platforms: [.macOS(.v26), .iOS(.v26), .tvOS(.v26), .watchOS(.v26), .visionOS(.v26)],
  products: [
    .executable(name: "locationhub", targets: ["locationhub"]),
    .library(name: "LocationHubClient", targets: ["LocationHubClient"]),
  ],
  targets: [
    .systemLibrary(name: "CHubLinux", path: "Sources/CLinux"),
    .systemLibrary(name: "CHubLoadTest", path: "loadtest/CLoadTest"),
    .systemLibrary(
      name: "CHubOpenSSL", path: "Sources/COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CHubZlib", path: "Sources/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

    // Bytes and values: no I/O, no clock, no randomness.
    hub("Bytes"),
    hub("Geo"),
    hub("Messages", ["HubBytes", "HubGeo"]),
    hub("HTTP", ["HubBytes"]),
    hub("Deflate", ["HubBytes", "CHubZlib"]),
    hub("WebSocket", ["HubBytes", "HubDeflate", "HubHTTP", "CHubZlib"]),
    .target(name: "HubCore", dependencies: ["HubMessages", "HubGeo", "HubBytes"]),
    hub("Tokens", ["HubBytes", "HubMessages", "CHubOpenSSL"]),

    hub("CommandLine"),

    // The pages, whose files a plugin puts into the executable.
    .target(
      name: "HubPages",
      dependencies: ["HubTiles", "HubDeflate", "HubMessages", "HubGeo", "HubBytes", "CHubOpenSSL"],
      path: "Sources/Pages", exclude: ["package.json"], plugins: ["HubEmbedPages"]),
    .plugin(
      name: "HubEmbedPages", capability: .buildTool(), dependencies: ["hub-embed-pages"],
      path: "Sources/EmbedPages/Plugin"),
    .executableTarget(name: "hub-embed-pages", path: "Sources/EmbedPages/Tool"),

    // I/O.
    hub("System", ["CHubLinux"]),
    hub("Transport", ["HubBytes", "HubSystem", "CHubLinux", "CHubOpenSSL"]),
    hub("Journal", ["HubBytes", "HubSystem"]),
    hub("Tiles", ["HubBytes", "HubDeflate", "HubGeo", "HubSystem"]),
    hub("Backplane", ["HubBytes", "HubSystem", "HubTransport"]),
    hub(
      "Cluster",
      [
        "HubBackplane", "HubRuntime", "HubCore", "HubTransport", "HubMessages", "HubGeo", "HubBytes", "CHubOpenSSL",
      ]),

    // What drives a hub: its turns, its journal, its outlets.
    .target(
      name: "HubRuntime", dependencies: ["HubCore", "HubJournal", "HubSystem", "HubMessages", "HubGeo", "HubBytes"]),
    hub(
      "Webhooks",
      [
        "HubBackplane", "HubRuntime", "HubCore", "HubJournal", "HubTokens", "HubTransport", "HubSystem", "HubHTTP",
        "HubMessages", "HubBytes",
      ]),
    hub(
      "Gateway",
      [
        "HubPages", "HubRuntime", "HubCore", "HubJournal", "HubTokens", "HubTransport", "HubSystem", "HubWebSocket",
        "HubHTTP", "HubMessages", "HubGeo", "HubDeflate", "HubBytes", "HubCluster", "HubWebhooks", "HubTiles",
      ]),

    // The client: its state machine, which runs on Apple systems, too; our own transport for it; and the product.
    hub("ClientCore", ["HubWebSocket", "HubHTTP", "HubMessages", "HubGeo", "HubBytes"]),
    hub("ClientLoop", ["HubClientCore", "HubTransport", "HubSystem", "HubHTTP", "HubMessages", "HubBytes"]),
    .target(
      name: "LocationHubClient",
      dependencies: [
        "HubClientCore", "HubWebSocket", "HubHTTP", "HubMessages", "HubGeo", "HubBytes",
        .target(name: "HubClientLoop", condition: .when(platforms: [.linux])),
        .target(name: "HubTransport", condition: .when(platforms: [.linux])),
        .target(name: "HubSystem", condition: .when(platforms: [.linux])),
      ]),
    hub("Simulation", ["HubBytes", "HubGeo", "HubMessages"]),
    .executableTarget(
      name: "locationhub",
      dependencies: [
        "HubBackplane", "HubCluster", "HubWebhooks",
        "HubCommandLine", "HubGateway", "HubPages", "HubRuntime", "HubCore", "HubJournal", "HubClientLoop",
        "HubSimulation", "HubTiles", "HubTokens", "HubTransport", "HubSystem", "HubMessages", "HubGeo", "HubBytes",
      ], plugins: ["HubEmbedBuild"]),
    .plugin(name: "HubEmbedBuild", capability: .buildTool(), path: "Sources/EmbedBuild"),

    support("HostileMessages", in: "loadtest"),
    support("TestCertificates", in: "Tests", ["CHubOpenSSL"]),
    support(
      "LoadTestKit", in: "loadtest",
      [
        "HubBytes", "CHubLoadTest", "HubCommandLine", "HubDeflate", "HubGeo", "HubMessages", "HubSimulation",
        "HubTestCertificates", "HubTransport", "HubSystem", "HubWebSocket",
      ]),
    .executableTarget(
      name: "hub-loadtest",
      dependencies: [
        "HubLoadTestKit", "LocationHubClient", "CHubLoadTest", "HubCommandLine", "HubTransport", "HubSystem",
        "HubWebSocket", "HubMessages", "HubGeo", "HubDeflate", "HubBytes",
      ],
      path: "loadtest/HubLoadTest"),
    .executableTarget(
      name: "hub-torture",
      dependencies: [
        "HubCommandLine", "HubDurabilityModel", "HubLoadTestKit", "HubClientLoop", "HubCore", "HubTransport",
        "HubSystem", "HubMessages", "HubGeo", "HubTestSupport",
      ],
      path: "loadtest/Torture"),
    .executableTarget(
      name: "hub-microbench",
      dependencies: [
        "HubHostileMessages", "HubCore", "HubJournal", "HubSystem", "HubWebSocket", "HubMessages", "HubGeo",
        "HubBytes",
      ],
      path: "loadtest/MicroBench"),
    .executableTarget(
      name: "hub-autobahn-server",
      dependencies: ["HubTransport", "HubSystem", "HubWebSocket", "HubHTTP", "HubDeflate", "HubBytes"],
      path: "Tests/Conformance/AutobahnServer"),
    .executableTarget(
      name: "hub-autobahn-client",
      dependencies: ["HubClientLoop", "HubTransport", "HubSystem", "HubWebSocket", "HubBytes"],
      path: "Tests/Conformance/AutobahnClient"),

    // What tests of several targets share.
    support("TestSupport", in: "Tests", ["HubGeo", "CHubZlib"]),
    support("JournalSupport", in: "Tests", ["HubCore", "HubJournal", "HubSystem", "HubTestSupport"]),
    support("TransportSupport", in: "Tests", ["HubTransport", "HubSystem"]),
    support(
      "DurabilityModel", in: "Tests",
      [
        "HubGateway", "HubRuntime", "HubCore", "HubJournal", "HubTransport", "HubSystem", "HubWebSocket", "HubHTTP",
        "HubMessages", "HubGeo", "HubBytes", "HubTestSupport", "HubJournalSupport", "HubTransportSupport",
      ]),
    tests("Bytes"),
    tests("Geo"),
    tests("Messages", ["HubGeo", "HubBytes", "HubHostileMessages"]),
    tests("HTTP", ["HubBytes"]),
    tests("Deflate", ["HubBytes"]),
    tests("WebSocket", ["HubBytes", "HubDeflate", "HubHTTP"]),
    tests("HubCore", of: "HubCore", ["HubMessages", "HubGeo", "HubBytes"]),
    tests("Tokens", ["HubMessages", "HubBytes"]),
    tests(
      "Webhooks",
      [
        "HubCore", "HubRuntime", "HubJournal", "HubJournalSupport", "HubTokens", "HubHTTP", "HubMessages", "HubGeo",
        "HubBytes", "HubSystem", "HubTransport", "HubTransportSupport",
      ]),
    .testTarget(name: "SystemTests", dependencies: ["HubSystem", "CHubLinux"]),
    tests(
      "Transport", ["HubBytes", "HubSystem", "CHubLinux", "CHubOpenSSL", "HubTestCertificates", "HubTransportSupport"]),
    tests("Journal", ["HubSystem", "HubJournalSupport"]),
    support("BackplaneSupport", in: "Tests", ["HubBackplane", "HubBytes"]),
    tests(
      "Cluster",
      [
        "HubBackplaneSupport", "HubBackplane", "HubCore", "HubRuntime", "HubJournal", "HubJournalSupport",
        "HubMessages", "HubGeo", "HubBytes", "HubSystem", "HubTransport", "HubTransportSupport",
      ]),
    tests(
      "Backplane",
      [
        "HubBackplaneSupport", "HubTestCertificates", "HubBytes", "HubSystem", "HubTransport", "HubTransportSupport",
      ]),
    .testTarget(
      name: "DurabilityModelTests",
      dependencies: [
        "HubDurabilityModel", "LocationHubClient", "HubClientCore", "HubGateway", "HubRuntime", "HubCore", "HubJournal",
        "HubJournalSupport",
        "HubTransportSupport", "HubTransport", "HubMessages", "HubGeo", "HubBytes", "HubTestSupport",
      ]),
    tests(
      "HubRuntime", of: "HubRuntime",
      ["HubCore", "HubJournal", "HubJournalSupport", "HubMessages", "HubGeo", "HubBytes", "HubSystem"]),
    tests(
      "Gateway",
      [
        "HubRuntime", "HubCore", "HubJournal", "HubClientLoop", "HubTokens", "HubMessages", "HubGeo", "HubBytes",
        "HubWebSocket", "HubHTTP", "HubTransport", "HubSystem", "HubPages", "HubTiles", "HubDeflate",
        "HubTestCertificates",
      ]),
    tests(
      "ClientCore",
      [
        "HubTokens", "HubMessages", "HubGeo", "HubHTTP", "HubWebSocket", "HubDeflate", "HubBytes", "HubSystem",
      ]),
    tests("ClientLoop", ["HubWebSocket", "HubHTTP", "HubMessages", "HubBytes", "HubTransport", "HubSystem"]),
    tests(
      "LocationHubClient", of: "LocationHubClient",
      [
        "HubClientCore", "HubGateway", "HubRuntime", "HubCore", "HubTokens", "HubMessages", "HubGeo", "HubWebSocket",
        "HubBytes", "HubTransport", "HubSystem",
      ]),
    .testTarget(name: "SimulationTests", dependencies: ["HubSimulation", "HubGeo", "HubMessages"]),
    tests("Pages", ["HubGeo"]),
    tests("Tiles", ["HubDeflate", "HubGeo", "HubSystem"]),
    tests("CommandLine"),
    .testTarget(
      name: "DocumentTests",
      dependencies: ["HubCommandLine", "HubGateway", "HubWebhooks", "HubCore", "HubMessages", "locationhub"]),
    .testTarget(name: "TidyTests"),
    // Both executables are built, so that the tests can run them as processes.
    tests(
      "LoadTestKit",
      [
        "HubCommandLine", "HubMessages", "HubBytes", "HubTransport", "HubSystem", "HubTestCertificates",
        "locationhub", "hub-loadtest",
      ]),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "HubGateway", "HubPages", "HubTiles", "HubRuntime", "HubClientLoop", "HubSimulation", "HubTokens",
        "HubCore", "HubMessages",
        "HubGeo", "HubBytes", "HubDeflate", "HubTransport", "HubSystem", "HubWebSocket", "HubTestSupport",
        "HubTestCertificates", "CHubOpenSSL",
        "locationhub", "hub-autobahn-server",  // built, so that tests can run them as processes
      ]),
  ],
  swiftLanguageModes: [.v6]
)

// What the compiler holds all targets to. Strict memory safety is the product's: tests and load generators call the
// kernel, OpenSSL and the product's unsafe interfaces at every turn, and nothing of them runs where it could do harm.
// System libraries have no Swift, and a plugin takes no settings.
for target in package.targets where target.type != .system && target.type != .plugin {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
  ]
  let isProduct = target.type != .test && !["Tests/", "loadtest/"].contains { target.path?.hasPrefix($0) == true }
  if isProduct { target.swiftSettings?.append(.strictMemorySafety()) }
  if isOptimised, target.type != .test, target.path?.hasPrefix("loadtest/") != true {
    let flags = ["-O", "-whole-module-optimization", "-num-threads", "2"]
    target.swiftSettings?.append(.unsafeFlags(flags, .when(configuration: .debug)))
  }
}
