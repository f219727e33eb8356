// Limits of what is read of an operator's own files; nobody from outside reaches them.

enum TileLimits {
  /// Bytes of an image of a map. Past it: 204, and the log says so.
  static let maximumImageBytes = 1024 * 1024
  /// Bytes of a directory of such images, and of what is said of them, compressed and not: 400,000 entries at least.
  /// Past it: the file is refused, or what is in that directory.
  static let maximumDirectoryBytes = 4 * 1024 * 1024
  /// Directories from the first one to an image's. Past it: the same.
  static let maximumDirectoryLevels = 4
  /// Entries of directories that are kept, 24 bytes each. Past it: the oldest are read again when they are asked for.
  static let keptDirectoryEntries = 1 << 20
  /// Degrees, both ways, of what is shown first, before anybody drives.
  static let cityDegrees = 3.0
  /// Characters of an attribution that comes out of a file.
  static let attributionCharacters = 300
}
