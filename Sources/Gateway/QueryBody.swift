// Bodies of the HTTP endpoints' answers.
import HubBytes
import HubMessages

enum QueryBody {
  /// `POST /v1/locations`: what became of the fixes.
  static func batch(_ batch: Ack.Batch?) -> [UInt8] {
    var body = ByteBuffer(capacity: 128)
    body.append("{\"accepted\":")
    body.append(integer: Int64(batch?.accepted ?? 0))
    body.append(",\"duplicates\":")
    body.append(integer: Int64(batch?.duplicates ?? 0))
    body.append(",\"rejected\":[")
    for (place, rejection) in (batch?.rejected ?? []).enumerated() {
      body.append(place == 0 ? "{\"index\":" : ",{\"index\":")
      body.append(integer: Int64(rejection.index))
      body.append(",\"code\":\"")
      body.append(rejection.code.name)
      body.append("\"}")
    }
    body.append("]}")
    return body.array()
  }
}
