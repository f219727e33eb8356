// Types of hub.js. How to use it is in protocol/javascript.md; what the members of messages mean, in protocol/.
// Times are in ms since 1970 by the hub's clock, angles in degrees, distances in metres, speeds in m/s, durations in
// seconds, but where a comment says otherwise.

export type Role = 'driver' | 'rider' | 'ops';
export type DriverStatus = 'available' | 'unavailable' | 'background' | 'on_trip';
export type TripStatus = 'requested' | 'accepted' | 'driver_en_route' | 'arrived_pickup' | 'trip_started'
  | 'arrived_destination' | 'completed' | 'cancelled';

/** The hub's codes (protocol/README.md, "Error codes"), and the client's own: the hub is closed for good, the queue is
 * full, IndexedDB does not work, the hub cannot be reached over HTTP. A newer hub may have others. */
export type ErrorCode = 'bad_json' | 'bad_message' | 'unknown_type' | 'too_large' | 'unauthorized' | 'forbidden'
  | 'unknown_channel' | 'unknown_trip' | 'invalid_location' | 'implausible_location' | 'token_expired' | 'rate_limited'
  | 'storage_full' | 'shutting_down' | 'internal' | 'invalid_transition' | 'not_found'
  | 'closed' | 'full' | 'storage' | 'unreachable' | (string & {});

export class HubError extends Error {
  readonly code: ErrorCode;
  /** Whether the same may be asked again. */
  readonly retry: 'never' | 'later' | 'withNewToken';
  /** Seconds, where the hub said. */
  readonly retryAfter?: number;
  /** With `invalid_transition` the trip's state. */
  readonly details?: { status?: TripStatus };
}

export interface Place { latitude: number; longitude: number }

/** Why there is no connection: `closed` (the hub's Close frame, its code in `code`), `refused` (the upgrade's HTTP
 * status in `code`), `lost`, `silent`, `timeout`, `token` (the token function gave none), `us` (`close` was called). */
export interface Reason {
  cause: 'closed' | 'refused' | 'lost' | 'silent' | 'timeout' | 'token' | 'us';
  code?: number;
  message: string;
}

export interface State {
  is: 'idle' | 'connecting' | 'live' | 'waiting' | 'closed';
  /** When it began, and when the next attempt is made; by this machine's clock. */
  since: number;
  retryAt?: number;
  reason?: Reason;
}

/** How often the hub wants a driver's fixes: seconds and metres. */
export interface Sampling { interval: number; minDistance: number; reason?: string }

export interface HubEvents {
  state: State;
  sampling: Sampling;
  /** A refusal that belongs to no promise: a fix that was refused, a fix of a batch; what IndexedDB does not take;
   * what another driver left, which is not sent as this one's (`forbidden`). */
  error: HubError;
}

export interface TokenNeed {
  reason: 'connect' | 'expiring' | 'refused';
  /** Aborted when the answer is not wanted any more. */
  signal: AbortSignal;
}

export interface Options {
  /** A token, or where to get one: called for each attempt, before a token ends, and when the hub refused one. */
  token?: string | ((need: TokenNeed) => Promise<string> | string);
  /** Development credentials, for a hub with `--dev-auth`. */
  dev?: { role: Role; id: string };
  /** How messages are written; `json` without it. */
  codec?: 'json' | 'binary';
  /** Where what is unsent is kept; in memory without it. */
  queue?: 'memory' | { indexedDB: string };
  /** Needed where there is no global one: Node before 22. */
  WebSocket?: new (url: string, protocols: string[]) => any;
  /** This machine's clock (ms since 1970), chance (0 ≤ x < 1) and timers: for tests. */
  now?: () => number;
  random?: () => number;
  setTimeout?: (f: () => void, ms: number) => unknown;
  clearTimeout?: (id: any) => void;
}

export interface Position extends Place {
  /** None in a snapshot. */
  channel?: string;
  driverId: string;
  tripId?: string;
  /** On `fleet` alone. */
  status?: DriverStatus;
  heading?: number;
  speed?: number;
  /** The radius that contains the true position with 68 % probability. */
  accuracy: number;
  confidence: 'high' | 'medium' | 'low';
  /** Of the fix, by the driver's clock. */
  timestamp: number;
  timeSource?: 'hub';
  /** Seconds from the fix to `published`. */
  age: number;
  /** When the hub published it, and when it came. */
  published: number;
  received: number;
  /** The newest event of the channel when it was published. */
  after?: number;
}

export interface Eta {
  tripId: string;
  target: 'pickup' | 'dropoff';
  /** Seconds, and the metres that are left. */
  eta: number;
  distance: number;
  arrivalTime: number;
  basis: 'route' | 'direct';
}

export interface Summary {
  distance: number; approach: number; track: number; duration: number; waiting: number; fixes: number; gaps: number;
  gapDuration: number;
}

export interface Trip {
  tripId: string;
  status: TripStatus;
  /** Of its last move, by the clock of who made it. */
  timestamp: number;
  created?: number;
  updated?: number;
  ended?: number;
  driverId?: string;
  riderId?: string;
  pickup?: Place;
  dropoff?: Place;
  /** An encoded polyline (precision 5). */
  route?: string;
  summary?: Summary;
}

export interface TripUpdate {
  channel: string;
  tripId: string;
  status: TripStatus;
  previousStatus?: TripStatus;
  driverId?: string;
  /** On `trips`; for ops. */
  riderId?: string;
  timestamp: number;
  location?: Place;
  pickup?: Place;
  dropoff?: Place;
  route?: string;
  summary?: Summary;
  sequence: number;
}

export interface Notice {
  channel: string;
  kind: 'driver_arriving' | 'driver_arrived' | 'off_route' | 'driver_offline' | 'driver_online' | 'fence_enter'
    | 'fence_exit' | 'fence_dwell' | 'hazard' | 'speeding' | 'message' | 'unserved';
  title: string;
  body: string;
  data?: Record<string, any>;
  sequence: number;
}

/** How things stand: when a feed begins, and where events could not be recovered. */
export interface Snapshot { trip?: Trip; position?: Position; eta?: Eta }

/** `asked`: it was closed. `trip_ended`, `grant_ended`, `revoked`: the hub ended it. An error's code: it refused. */
export type EndReason = 'asked' | 'trip_ended' | 'grant_ended' | 'revoked' | ErrorCode;

/** A fix as the phone measured it, and its outcome (protocol/ops.md, "raw"). */
export interface RawFix extends Place {
  channel: string;
  driverId: string;
  accuracy?: number;
  heading?: number;
  speed?: number;
  source?: string;
  timestamp: number;
  verdict: 'accepted' | 'absorbed' | 'history' | 'duplicate' | 'held' | 'refused';
  reason?: ErrorCode;
  /** Metres from here to the place that was published. */
  offset?: number;
}

export interface DriverEvents extends FeedEvents {
  /** With `{raw: true}`; for ops. */
  raw: RawFix;
  offer: Offer;
  withdrawn: OfferWithdrawn;
}

/** A trip that the hub offers to a driver; `expiresAt` is by the hub's clock. */
export interface Offer {
  channel: string;
  tripId: string;
  pickup: Place;
  dropoff?: Place;
  /** Metres as the crow flies, and seconds. */
  distance: number;
  eta: number;
  expiresAt: number;
  sequence: number;
}

/** The offer holds no more; a newer hub may have other reasons. */
export interface OfferWithdrawn {
  channel: string;
  tripId: string;
  reason: 'taken' | 'cancelled' | 'expired' | 'declined' | 'unavailable' | 'stopped' | string;
  sequence: number;
}

/** What the hub counted in one second (protocol/ops.md, "The hub's own figures"). */
export interface Stats {
  timestamp: number;
  fixes: number;
  deliveries: number;
  /** Seconds from receipt to write; missing where nothing was delivered. */
  p50?: number;
  p90?: number;
  p99?: number;
  outboxBytes: number;
  sessions: Record<Role, number>;
  cpuSeconds: number;
  residentBytes: number;
  drops: Record<string, number>;
  errors: Record<string, number>;
  journalLag?: number;
  /** Of how many hubs of a cluster these are the figures together. */
  hubs?: number;
}

export interface StatsEvents {
  /** `history`: up to 600 seconds, the oldest first. */
  snapshot: { history?: Stats[] };
  stats: Stats;
  /** A slow `for await` has missed events. */
  lost: undefined;
  ended: EndReason;
}

export interface Counts {
  /** A geohash. */
  cell: string;
  available: number;
  on_trip: number;
  unavailable: number;
  background: number;
  offline: number;
}

export interface CountsEvents {
  snapshot: Snapshot;
  /** `cells` of the feed has been brought up to date. */
  update: { channel: string; tick: number; full: boolean; cells: Counts[] };
  /** A slow `for await` has missed events. */
  lost: undefined;
  ended: EndReason;
}

export interface FeedEvents {
  snapshot: Snapshot;
  position: Position;
  eta: Eta;
  update: TripUpdate;
  notice: Notice;
  /** Events were missed that the hub does not have any more; a snapshot follows. */
  lost: undefined;
  ended: EndReason;
}

export interface FeedState { is: 'waiting' | 'live' | 'ended'; reason?: EndReason }

/** Subscribed to from its beginning to `close`, over all breaks. */
export interface Feed<E = FeedEvents> extends AsyncIterable<{ [K in keyof E]: { type: K; data: E[K] } }[keyof E]> {
  /** Gives a function that ends the listening; so does `signal`. */
  on<K extends keyof E>(type: K, f: (data: E[K]) => void, o?: { signal?: AbortSignal }): () => void;
  readonly state: FeedState;
  readonly position?: Position;
  close(): void;
}

export type TripFeed = Feed;
export type DriverFeed = Feed<DriverEvents>;
/** `accept` and `decline` are kept, and sent again, until the hub has answered. */
export interface OfferFeed extends DriverFeed {
  accept(trip: string): Promise<Trip>;
  decline(trip: string): Promise<unknown>;
}

/** A driver on a map. Riders see a pseudonym, a rounded place, and neither heading nor speed. */
export interface AreaDriver extends Place {
  driverId: string;
  heading?: number;
  speed?: number;
  status: DriverStatus;
  timestamp: number;
  timeSource?: 'hub';
  /** For ops, from here on; `online` is there where it is false. */
  tripId?: string;
  accuracy?: number;
  confidence?: 'high' | 'medium' | 'low';
  vehicleType?: string;
  online?: false;
  cell: string;
  /** Seconds from the fix to `published`, without the ms (`off`) that the phone's clock is behind, if it is known to be
   * off by over 2 s: by the least that fixes took which came while one looked. */
  age: number;
  off?: number;
  published: number;
  received: number;
}

export interface AreaUpdate {
  channel: string;
  cell: string;
  tick: number;
  full: boolean;
  drivers: AreaDriver[];
  left: string[];
  more?: number;
}

export interface AreaEvents {
  snapshot: Snapshot;
  /** `drivers` of the feed has been brought up to date with it. */
  update: AreaUpdate;
  /** A slow `for await` has missed events. */
  lost: undefined;
  ended: EndReason;
}

/** Degrees; where west is greater than east it crosses the antimeridian. */
export interface Box { west: number; south: number; east: number; north: number }

/** What a view shows: a circle (metres), a geohash, or, for ops, a box. */
export type Area = (Place & { radius: number }) | string | Box;

export interface AreaFeed extends Feed<AreaEvents> {
  readonly drivers: ReadonlyMap<string, AreaDriver>;
  /** How many more there are in crowded cells. */
  readonly more: number;
  /** Without a `precision` of its own with that of the beginning. */
  move(area: Area, o?: { precision?: number }): void;
}

export interface CountsFeed extends Feed<CountsEvents> {
  /** By geohash, a little beyond the box, too. */
  readonly cells: ReadonlyMap<string, Counts>;
  move(box: Box, o?: { precision?: number }): void;
}

export interface Share { shareId: string; created: number; url: string; token: string; expires?: number }

export interface Fix extends Place {
  /** When it was measured, ms since 1970 or a Date; now without it. */
  timestamp?: number | Date;
  /** What a phone does not know may be null, or -1. */
  accuracy?: number | null;
  heading?: number | null;
  speed?: number | null;
  altitude?: number | null;
  source?: 'gps' | 'wifi' | 'cellular' | 'fused' | 'cached';
  headingAccuracy?: number | null;
  speedAccuracy?: number | null;
  /** 0…1. */
  batteryLevel?: number | null;
}

/** What a browser gives (`GeolocationPosition`). */
export interface PhonePosition { coords: Omit<Fix, 'timestamp'>; timestamp: number }

export interface Driver extends Partial<Place> {
  driverId: string;
  status: DriverStatus;
  vehicleType?: string;
  tags?: string[];
  heading?: number;
  speed?: number;
  accuracy?: number;
  age?: number;
  timestamp?: number;
  timeSource?: 'hub';
  predicted?: Place;
  distance?: number;
  online?: boolean;
  confidence?: 'high' | 'medium' | 'low';
  tripId?: string;
  /** When it came, by the hub's clock: `age` is of then. */
  published?: number;
  received?: number;
}

export interface DriverFilter {
  limit?: number;
  status?: DriverStatus;
  vehicleType?: string;
  tags?: string[];
  /** Seconds. */
  maxAge?: number;
  /** Offline drivers, too. */
  stale?: true;
}
export type GeoJSON = { type: string; [member: string]: any };
export interface TripPlaces { pickup?: Place; dropoff?: Place; route?: string }
/** Which drivers are asked for a trip: protocol/offers.md has what each is without it. */
export interface OfferCriteria {
  vehicleType?: string;
  tags?: string[];
  radius?: number;
  drivers?: number;
  duration?: number;
  limit?: number;
}

export class Hub {
  /** A WebSocket URL: wss://HOST/v1/ws. Throws a TypeError where it is none, and where there is no WebSocket. */
  constructor(url: string, o?: Options);
  readonly state: State;
  /** What is unsent or not yet confirmed, and how many fixes had to give way. */
  readonly backlog: { messages: number; dropped: number };
  readonly sampling?: Sampling;
  connect(): this;
  /** For good: nothing but `connect` opens again. Forgets the token. Queued moves and fixes are kept. */
  close(): Promise<void>;
  on<K extends keyof HubEvents>(type: K, f: (e: HubEvents[K]) => void, o?: { signal?: AbortSignal }): () => void;
  /** The hub's clock, ms since 1970. */
  now(): number;

  trip(id: string): TripFeed;
  /** `raw`: with the fixes as they were measured; for ops. */
  driver(id: string, o?: { raw?: boolean }): DriverFeed;
  /** The trips that the hub offers to this driver, and its answers. */
  offers(driver: string): OfferFeed;
  fence(id: string): Feed;
  fleet(): Feed;
  /** `precision`: the characters of its cells' geohashes, 3 to 8, for ops; the hub chooses without it. */
  view(area: Area, o?: { precision?: number }): AreaFeed;
  /** These three are for ops: each event of each trip, drivers by status and cell, the hub's figures each second. */
  trips(): Feed;
  counts(box: Box, o?: { precision?: number }): CountsFeed;
  stats(): Feed<StatsEvents>;

  /** Over the socket: they wait for a connection, and are asked again after a break. */
  nearby(q: Place & { radius?: number } & DriverFilter): Promise<Driver[]>;
  within(q: ({ bbox: [number, number, number, number] } | { polygon: GeoJSON }) & DriverFilter):
    Promise<{ drivers: Driver[]; more?: number }>;
  getDriver(id: string): Promise<Driver>;
  getTrip(id: string): Promise<Trip>;
  /** Over HTTP, with the connection's token. */
  getTrips(q?: { status?: string; driver?: string; since?: number; limit?: number; cursor?: string }):
    Promise<{ trips: Trip[]; next?: string }>;
  track(id: string, q?: { source?: 'filtered' | 'raw'; tolerance?: number }): Promise<GeoJSON>;
  /** Drivers by how their id begins; for ops. */
  find(q?: { search?: string; status?: string; limit?: number; cursor?: string }):
    Promise<{ drivers: Driver[]; next?: string }>;
  /** A link to the rider's page of a trip, for its rider and ops. */
  share(trip: string, o?: { expires?: Date | number }): Promise<Share>;
  fences(q?: { limit?: number; cursor?: string; shape?: 'full' }):
    Promise<{ fences: Record<string, any>[]; next?: string }>;
  getFence(id: string): Promise<Record<string, any>>;

  /** `leftOut`: the hub's advice makes it unnecessary. `full`: there is no room. Throws a HubError if it is no fix. */
  send(fix: Fix | PhonePosition, o?: { trip?: string }): 'queued' | 'leftOut' | 'full';
  /** These are kept, and sent again, until the hub has answered. What it has taken does not fail: where it does not say
   * the trip, it is what was sent: its id, and status and time or what changed. */
  status(s: DriverStatus | { status: DriverStatus; vehicleType?: string; tags?: string[] }): Promise<void>;
  move(trip: string, to: TripStatus,
    o?: TripPlaces & { expected?: TripStatus; location?: Place; driverId?: string; riderId?: string;
      offer?: OfferCriteria }): Promise<Trip>;
  change(trip: string, to: TripPlaces): Promise<Partial<Trip> & { tripId: string }>;
}

/** What markers need of a position; that of an AreaDriver is enough. Without `received` it came now. */
export interface Shown extends Place {
  timestamp: number;
  timeSource?: 'hub';
  heading?: number;
  speed?: number;
  accuracy?: number;
  age?: number;
  published?: number;
  received?: number;
}

/** Where to draw one driver. */
export class Marker {
  push(p: Shown): void;
  /** `t`: `hub.now()`. `age`: seconds since the fix; before the first position infinite, and the place is NaN. */
  at(t: number): { latitude: number; longitude: number; heading?: number; age: number; predicted: boolean };
  /** Sets the marker down at each position, for who prefers reduced motion. */
  snap: boolean;
}

/** Where to draw many, without garbage. The heading is NaN where none is known. */
export class Markers {
  push(id: string, p: Shown): void;
  drop(id: string): void;
  each(t: number, f: (id: string, latitude: number, longitude: number, heading: number, age: number) => void): void;
  snap: boolean;
}
