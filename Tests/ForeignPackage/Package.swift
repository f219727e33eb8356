// swift-tools-version: 6.2
// A package of somebody else's, which depends on this one, has a target `Geo` of its own, and holds itself to the compiler's
// strictest rules about imports: one import must be enough. run.sh fills in where this one lies.
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("MemberImportVisibility"), .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
]
let hub = Target.Dependency.product(name: "LocationHubClient", package: "location-hub")

let package = Package(
  name: "somebody-elses",
  dependencies: [.package(path: "location-hub")],
  targets: [
    .target(name: "Geo", swiftSettings: strict),
    .executableTarget(name: "Check", dependencies: ["Geo", hub], swiftSettings: strict),
    // The README's code and the tutorials', as they stand there.
    .executableTarget(name: "ReadmeDriver", dependencies: [hub], swiftSettings: strict),
    .executableTarget(name: "ReadmeRider", dependencies: [hub], swiftSettings: strict),
    .executableTarget(name: "TutorialDriver", dependencies: [hub], swiftSettings: strict),
    .executableTarget(name: "TutorialRider", dependencies: [hub], swiftSettings: strict),
  ]
)
