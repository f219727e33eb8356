// Limits of an operator's own files.

enum TileLimits {
  /// Bytes of a map's image. Past it: 204, and a log line.
  static let maximumImageBytes = 1024 * 1024
  /// Bytes of a directory of images, and of the metadata, compressed and not: 400,000 entries at least. Past it: the
  /// file is refused, or the directory's images.
  static let maximumDirectoryBytes = 4 * 1024 * 1024
  /// Directories from the first one to an image's. Past it: 204, and a log line.
  static let maximumDirectoryLevels = 4
  /// Entries of directories that are kept, 24 bytes each. Past it: the oldest are read again when they are asked for.
  static let keptDirectoryEntries = 1 << 20
  /// Directories that are kept, and looked through for each image. Past it: the oldest are read again, too.
  static let keptDirectories = 1024
  /// Degrees, both ways, of the initial view without drivers.
  static let cityDegrees = 3.0
  /// Characters of an attribution from a file.
  static let attributionCharacters = 300
}
