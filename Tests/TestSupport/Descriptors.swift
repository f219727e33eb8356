// What this process has open.
import Foundation

/// Copies of this process's descriptors of a file or directory, as a forked child has them. Whoever calls closes them.
public func copiedDescriptors(of path: String) throws -> [Int32] {
  try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { name in
    // What was closed meanwhile has no link.
    guard let descriptor = Int32(name),
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)) == path
    else { return nil }
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
  }
}
