// The built `locationhub` as a process: what an operator sees of it.
import Foundation
import Testing

/// What a process that ended left behind.
struct ProcessOutcome {
  var status: Int32
  var output: String
  var errors: String
}

final class HubProcess {
  private let process = Process()
  private let output = Pipe()
  private let errors = Pipe()
  private let ended = DispatchSemaphore(value: 0)
  private var outputText = ""
  private var errorText = ""
  /// Once it listens.
  private(set) var port: UInt16 = 0

  static let executable = built("locationhub")

  /// The executable of that name that was built with these tests: it lies beside their bundle.
  private static func built(_ name: String) -> URL? {
    let bundle = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    var folder = bundle.deletingLastPathComponent()
    for _ in 0..<3 {
      let candidate = folder.appendingPathComponent(name)
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
      folder.deleteLastPathComponent()
    }
    return nil
  }

  /// `openFiles` lowers the limit of open files, which the process cannot raise again, and `fileBytes` the size that
  /// its files may have (see `allowFiles`); `hasFullOutput`: its standard output is a full disk. A hub journals only
  /// where it gets a directory, or has a directory of its own to run in.
  init(
    _ given: [String], of program: String = "locationhub", openFiles: Int? = nil, fileBytes: Int? = nil,
    in directory: String? = nil, environment: [String: String] = [:], hasFullOutput: Bool = false
  ) throws {
    let isServe = given.first == "serve" && directory == nil
    let isSaid = given.contains("--data") || given.contains("--no-journal")
    let arguments = given + (isServe && !isSaid ? ["--no-journal"] : [])
    guard let executable = HubProcess.built(program) else {
      throw PeerError.unexpected("\(program) is not beside the test bundle")
    }
    if let openFiles {
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      process.arguments = ["-c", "ulimit -n \(openFiles); exec \"$0\" \"$@\"", executable.path] + arguments
    } else if let fileBytes {
      // The signal may have been ignored by whoever runs the tests, which processes inherit.
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments =
        ["--default-signal=XFSZ", "prlimit", "--fsize=\(fileBytes):unlimited", executable.path] + arguments
    } else {
      process.executableURL = executable
      process.arguments = arguments
    }
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory) }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = hasFullOutput ? FileHandle(forWritingAtPath: "/dev/full") : output
    if hasFullOutput { try output.fileHandleForWriting.close() }  // so that who reads the pipe finds its end
    process.standardError = errors
    process.terminationHandler = { [ended] _ in ended.signal() }
    try process.run()
  }

  deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

  /// Starts `serve` with these options and waits until it listens.
  static func serve(
    port: UInt16 = 0, _ more: [String] = [], openFiles: Int? = nil, fileBytes: Int? = nil, in directory: String? = nil
  ) throws -> HubProcess {
    let hub = try HubProcess(
      ["serve", "--port", "\(port)", "--dev-auth", "--loops", "1", "--close-time", "0.3"] + more, openFiles: openFiles,
      fileBytes: fileBytes, in: directory)
    try hub.waitUntilItListens()
    return hub
  }

  /// Starts the echo server of the conformance suite, and returns when it listens.
  static func echo() throws -> HubProcess {
    let server = try HubProcess([], of: "hub-autobahn-server")
    try server.waitUntilItListens()
    return server
  }

  func waitUntilItListens() throws {
    let line = try readLine()
    let address = /listening on (https?|ws):\/\/127\.0\.0\.1:([0-9]+)/
    guard let match = line.firstMatch(of: address), let found = UInt16(match.2) else {
      throw PeerError.unexpected("the first line is: \(line)")
    }
    port = found
  }

  /// Runs a command to its end.
  static func run(
    _ arguments: [String], in directory: String? = nil, environment: [String: String] = [:],
    within seconds: Double = Deadline.patience
  ) throws -> ProcessOutcome {
    try HubProcess(arguments, in: directory, environment: environment).outcome(within: seconds)
  }

  var identifier: Int32 { process.processIdentifier }

  func send(signal: Int32) { kill(process.processIdentifier, signal) }

  /// Sets the size that the running process's files may have; nil for any.
  func allowFiles(bytes: Int?) throws {
    let change = try Process.run(
      URL(fileURLWithPath: "/usr/bin/prlimit"),
      arguments: ["--pid", "\(identifier)", "--fsize=\(bytes.map(String.init) ?? "unlimited"):unlimited"])
    change.waitUntilExit()
    guard change.terminationStatus == 0 else { throw PeerError.unexpected("prlimit: \(change.terminationStatus)") }
  }

  /// Waits for the end; throws when it does not come in time.
  func outcome(within seconds: Double = Deadline.patience) throws -> ProcessOutcome {
    // What these processes say fits into a pipe, so reading after the end cannot hold them up.
    guard ended.wait(timeout: .now() + seconds) == .success else {
      throw PeerError.timedOut(waitingFor: "the end of the process")
    }
    outputText += String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    errorText += String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    return ProcessOutcome(
      status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
      output: outputText, errors: errorText)
  }

  func readLine() throws -> String {
    try read(output, into: \.outputText, waitingFor: "\n")
    return outputText
  }

  /// Waits until the process has written this to standard output.
  func waitForOutput(_ text: String) throws { try read(output, into: \.outputText, waitingFor: text) }

  /// Waits until the process has written this to standard error.
  func waitForError(_ text: String) throws { try read(errors, into: \.errorText, waitingFor: text) }

  private func read(
    _ pipe: Pipe, into text: ReferenceWritableKeyPath<HubProcess, String>, waitingFor wanted: String
  ) throws {
    let deadline = Deadline()
    let descriptor = pipe.fileHandleForReading.fileDescriptor
    while !self[keyPath: text].contains(wanted) {
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&entry, 1, deadline.millisecondsLeft) > 0 else {
        throw PeerError.timedOut(waitingFor: "the process to say: \(wanted)")
      }
      let data = pipe.fileHandleForReading.availableData
      guard !data.isEmpty else {
        let outcome = try outcome()
        throw PeerError.unexpected("the process ended with \(outcome.status): \(outcome.errors)")
      }
      self[keyPath: text] += String(decoding: data, as: UTF8.self)
    }
  }
}
