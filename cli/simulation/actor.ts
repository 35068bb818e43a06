/** A part of the simulation that has events and a clock of its own. */
export interface Actor {
  /** The time on the actor's clock minus the true time, in milliseconds. */
  readonly skewMs: number;
  /** If false, the simulation drops the actor's events: no timer fires and no answer arrives. */
  readonly isAlive: boolean;
}

/** The actor for the traffic, the network and the store, whose clock shows the true time. */
export const WORLD: Actor = { skewMs: 0, isAlive: true };
