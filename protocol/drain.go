package protocol

// Drain is the event that tells a member that it is about to stop for good. From now on it gives
// nothing to anybody, and keeps its word to those to whom it gave something. A driver repeats it
// after Start. Only where Info.Drains.
const Drain Kind = 9
