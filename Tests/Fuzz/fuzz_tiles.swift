// modules: HubBytes HubGeo HubHTTP HubSystem HubDeflate HubWebSocket HubTiles
// libraries: z
// libFuzzer entry for PMTiles files, as an operator's file is opened and read (run.sh in this folder builds and runs
// it). The input is the file, but for the first byte: after an even one the name of the format and what can be read are
// put over the head, so that directories are reached. Checked beyond not crashing: an image is no longer than the
// limit, and comes again the same.

import HubSystem

@testable import HubTiles

private struct Input: TileBytes {
  let bytes: [UInt8]
  let tag = "f"

  func read(at offset: Int, count: Int) throws(SystemError) -> [UInt8] {
    offset < bytes.count ? Array(bytes[offset..<min(bytes.count, offset + count)]) : []
  }

  func isUnchanged() throws(SystemError) -> Bool { true }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count > 0 else { return 0 }
  var bytes = [UInt8](UnsafeBufferPointer(start: start + 1, count: count - 1))
  if start[0] & 1 == 0, bytes.count >= PMTilesHeader.byteCount {
    bytes.replaceSubrange(..<8, with: Array("PMTiles".utf8) + [3])
    // Where parts begin and how long they are: within the first 64 KiB.
    for part in stride(from: 8, to: 72, by: 8) { bytes.replaceSubrange(part + 2..<part + 8, with: [0, 0, 0, 0, 0, 0]) }
    bytes.replaceSubrange(97..<102, with: [1 + start[0] >> 1 & 1, 1, 2, 0, 26])
  }
  do throws(MapTileError) {
    var reader = TileReader(TilePack(try PMTilesArchive(Input(bytes: bytes))))
    for zoom in [0, 1, 3, 26] {
      guard let tile = MapTile(zoom: zoom, x: (1 << zoom) / 3, y: (1 << zoom) / 2) else { preconditionFailure("it is") }
      do throws(MapTileError) {
        let image = try reader.image(tile)
        precondition(image?.bytes.count ?? 0 <= 1 << 20, "within the limit")
        let again = try reader.image(tile)
        precondition(again?.bytes == image?.bytes && again?.tag == image?.tag, "the same again")
      } catch {}
    }
  } catch {}
  return 0
}
