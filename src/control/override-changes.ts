import { type Override, type OverrideUpdate, overrideId } from "../overrides/override.ts";

/** The maximum number of overrides that are remembered after they were removed or have ended. */
const MAX_REMOVED = 10_000;

/**
 * The overrides in the memory of an object, with the version in which each was changed. The id of an
 * override that was removed or has ended stays for some time, because isolates may have an older version
 * of it that ends later.
 */
export class OverrideChanges {
  /** By id, in the order of their changes. */
  readonly #overrides = new Map<string, Override>();
  /** The version of the last change of each override, also of absent ones, in the same order. */
  readonly #versions = new Map<string, number>();
  /** All changes after this version are known. */
  oldest: number;
  /** The version of the newest change. */
  version: number;
  /** The first time at which an override ends; may be too early. */
  #nextEnd = Number.POSITIVE_INFINITY;

  constructor(version: number, oldest = version) {
    this.version = version;
    this.oldest = oldest;
  }

  get size(): number {
    return this.#overrides.size;
  }

  get(id: string): Override | undefined {
    return this.#overrides.get(id);
  }

  values(): Iterable<Override> {
    return this.#overrides.values();
  }

  /** @param override undefined if the override was removed */
  put(id: string, override: Override | undefined, version: number): void {
    // Deleted first, so that the entries stay in the order of changes.
    this.#versions.delete(id);
    this.#overrides.delete(id);
    this.#versions.set(id, version);
    if (!override) return;
    this.#overrides.set(id, override);
    this.#nextEnd = Math.min(this.#nextEnd, override.expiresAt);
  }

  /** Takes over what another object has sent. */
  apply({ version, isComplete, set, removed }: OverrideUpdate): void {
    if (isComplete) {
      // This object never knew overrides that were both set and removed before, but isolates may.
      this.#overrides.clear();
      this.#versions.clear();
      this.oldest = version;
    }
    for (const id of removed) this.put(id, undefined, version);
    for (const override of set) this.put(overrideId(override), override, version);
    this.version = version;
    this.forgetRemoved();
  }

  /**
   * Returns the changes since a version.
   *
   * @param version the version that the receiver has, at most that of the newest change
   */
  since(version: number): OverrideUpdate {
    if (version < this.oldest) {
      return { version: this.version, isComplete: true, set: [...this.values()], removed: [] };
    }
    const set: Override[] = [];
    const removed: string[] = [];
    for (const [id, changedIn] of this.#versions) {
      if (changedIn <= version) continue;
      const override = this.#overrides.get(id);
      if (override) set.push(override);
      else removed.push(id);
    }
    return { version: this.version, isComplete: false, set, removed };
  }

  /**
   * Removes the overrides that have ended. They keep their versions: an isolate that has this version
   * knows the end, and an isolate with an older version learns that the override is gone.
   *
   * @returns the ids of the removed overrides
   */
  removeEnded(now: number): string[] {
    if (now < this.#nextEnd) return [];
    this.#nextEnd = Number.POSITIVE_INFINITY;
    const ended: string[] = [];
    for (const [id, { expiresAt }] of this.#overrides) {
      if (expiresAt > now) {
        this.#nextEnd = Math.min(this.#nextEnd, expiresAt);
        continue;
      }
      this.#overrides.delete(id);
      ended.push(id);
    }
    return ended;
  }

  /**
   * Forgets the oldest of the overrides that were removed or have ended, if there are too many.
   *
   * @returns the forgotten ids
   */
  forgetRemoved(): string[] {
    const forgotten: string[] = [];
    const excess = this.#versions.size - this.#overrides.size - MAX_REMOVED;
    if (excess <= 0) return forgotten;
    for (const [id, version] of this.#versions) {
      if (forgotten.length === excess) break;
      if (this.#overrides.has(id)) continue;
      this.#versions.delete(id);
      this.oldest = Math.max(this.oldest, version);
      forgotten.push(id);
    }
    return forgotten;
  }
}
