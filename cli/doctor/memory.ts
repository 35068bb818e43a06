import { type Finding, finding, quoted } from "./finding.ts";

/** Above this share of the maximum, the memory counts as low. */
const LOW_SHARE = 0.8;

/** Fields of INFO: the used size and its maximum. Upstash has the first pair, Redis the second. */
const SIZES = [
  ["total_data_size", "max_data_size"],
  ["used_memory", "maxmemory"],
] as const;

/**
 * Checks the eviction policy and the memory left. Both come from INFO, because CONFIG GET returns
 * neither of them on Upstash.
 *
 * @param info the fields of INFO; empty if the database does not answer this command
 */
export function checkMemory(info: ReadonlyMap<string, string>): Finding[] {
  return [evictionFinding(info), memoryFinding(info)];
}

function evictionFinding(info: ReadonlyMap<string, string>): Finding {
  const policy = info.get("maxmemory_policy");
  if (!policy) return finding("eviction-unknown", "INFO has no maxmemory_policy");
  const evicted = numberIn(info, "evicted_keys");
  const count = evicted ? `; ${evicted} keys were evicted since the server started` : "";
  const value = `maxmemory_policy is ${quoted(policy)}${count}`;
  return finding(policy === "noeviction" ? "eviction-off" : "eviction-on", value, {
    policy: quoted(policy),
  });
}

function memoryFinding(info: ReadonlyMap<string, string>): Finding {
  for (const [usedField, maxField] of SIZES) {
    const [usedBytes, maxBytes] = [numberIn(info, usedField), numberIn(info, maxField)];
    if (usedBytes === undefined || maxBytes === undefined) continue;
    if (maxBytes === 0) {
      return finding("memory-ok", `${megabytes(usedBytes)} used; ${maxField} sets no maximum`, {
        usedBytes,
      });
    }
    const share = usedBytes / maxBytes;
    const percent = Math.floor(share * 100);
    const value = `${megabytes(usedBytes)} of ${megabytes(maxBytes)} used (${percent} %)`;
    const code = share > LOW_SHARE ? "memory-low" : "memory-ok";
    return finding(code, value, { usedBytes, maxBytes });
  }
  return finding("memory-unknown", "INFO has no size and maximum");
}

function numberIn(info: ReadonlyMap<string, string>, field: string): number | undefined {
  const text = info.get(field);
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
