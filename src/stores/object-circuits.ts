import { Circuit, type Ticket } from "./circuit.ts";

/**
 * The maximum number of circuits. If there are more, the least recently used circuit is removed.
 */
const MAX_OBJECTS = 256;

/**
 * Stores the circuits of a store's objects. An object's identity is the key of its circuit. Only
 * objects that have failed since their last success have a circuit.
 */
export class ObjectCircuits {
  readonly #timeoutMs: number;
  /** The circuits in the order of use, with the most recently used circuit at the end. */
  readonly #circuits = new Map<string, Circuit>();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  of(identities: readonly string[]): Circuit[] {
    if (this.#circuits.size === 0) return [];
    return identities.flatMap((identity) => {
      const circuit = this.#circuits.get(identity);
      return circuit ? this.#keep(identity, circuit) : [];
    });
  }

  /** Records a successful call to these objects. @returns how many circuits this call has closed */
  succeed(identities: readonly string[]): number {
    if (this.#circuits.size === 0) return 0;
    let closed = 0;
    for (const identity of identities) {
      if (this.#circuits.get(identity)?.succeed()) closed += 1;
      this.#circuits.delete(identity);
    }
    return closed;
  }

  /**
   * Records that a call to these objects failed. Only the circuit of the object that the failure is
   * attributed to may open.
   *
   * @param tickets maps each circuit of the call to the ticket that the call got there
   * @returns the identity that the failure is attributed to, and whether its circuit opened
   */
  fail(
    identities: readonly string[],
    tickets: ReadonlyMap<Circuit, Ticket>,
    now: number,
    failure: string,
  ): { culprit: string; opened: boolean } {
    const circuits = identities.map((identity) => {
      const circuit = this.#circuits.get(identity) ?? new Circuit(this.#timeoutMs);
      return [identity, this.#keep(identity, circuit)] as const;
    });
    let [culprit = "", most] = [identities[0], 0];
    for (const [identity, { failures }] of circuits) {
      if (failures > most) [culprit, most] = [identity, failures];
    }
    let opened = false;
    for (const [identity, circuit] of circuits) {
      const ticket = tickets.get(circuit) ?? 0;
      if (circuit.fail(ticket, now, failure, identity === culprit)) opened = true;
    }
    return { culprit, opened };
  }

  /** Moves a circuit to the end of the order, and removes the first one if there are too many. */
  #keep(identity: string, circuit: Circuit): Circuit {
    this.#circuits.delete(identity);
    this.#circuits.set(identity, circuit);
    if (this.#circuits.size > MAX_OBJECTS) {
      this.#circuits.delete(this.#circuits.keys().next().value as string);
    }
    return circuit;
  }
}
