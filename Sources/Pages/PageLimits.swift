// Limits of an operator's own files for the pages, read when the hub starts.

enum PageLimits {
  /// Streets that are served as one file: 7,000 are some 50 KB compressed. More are served in tiles.
  static let maximumStreetsInOneFile = 20_000
  /// Tiles that one straight piece of a street may touch, some 100 km. Past it: the file is refused.
  static let maximumTilesPerPiece = 4096
}
