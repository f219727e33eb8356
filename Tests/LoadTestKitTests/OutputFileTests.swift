// Files that results go to: looked at before, written meanwhile and at the end.
import Foundation
import Testing

@testable import HubLoadTestKit

@Suite struct OutputFileTests {
  private let folder = FileManager.default.temporaryDirectory.path + "/hub-loadtest-\(UUID().uuidString)"

  private func withFolder(_ body: () throws -> Void) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try body()
  }

  @Test("looking whether it can be written leaves what is there, and nothing where nothing was")
  func looks() throws {
    try withFolder {
      try write("before", to: folder + "/old")
      let old = try OutputFile(folder + "/old")
      #expect(try readText(old.path) == "before")
      _ = try OutputFile(folder + "/new")
      #expect(!FileManager.default.fileExists(atPath: folder + "/new"))
      try old.update("so far")
      #expect(try readText(old.path) == "so far")
      try old.write("all")
      #expect(try readText(old.path) == "all")
    }
  }

  @Test("what cannot be written is reported", arguments: ["/no/folder/file", "/"])
  func refused(path: String) {
    #expect(throws: LoadTestError.self) { try OutputFile(path) }
  }

  @Test("what is no regular file is written once, at the end")
  func pipe() throws {
    try withFolder {
      let path = folder + "/pipe"
      #expect(mkfifo(path, 0o600) == 0)
      // Nobody reads it yet.
      _ = try OutputFile(path)
      let reader = open(path, O_RDONLY | O_NONBLOCK)
      defer { close(reader) }
      let file = try OutputFile(path)
      try file.update("so far")
      try file.write("all")
      var bytes = [UInt8](repeating: 0, count: 100)
      let count = read(reader, &bytes, bytes.count)
      #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "all")
    }
  }

  @Test("a program is looked for as it will be when it is started")
  func executables() throws {
    try HubProcess.check(executable: "sh")
    try HubProcess.check(executable: "/bin/sh")
    for path in ["/no/hub", "/bin", "/etc/passwd", "no-such-program"] {
      #expect(throws: LoadTestError.self, "\(path)") { try HubProcess.check(executable: path) }
    }
  }
}
