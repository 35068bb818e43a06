import { LUA_COUNTERS } from "./lua-counters.ts";
import { LUA_UNDO } from "./lua-undo.ts";

/**
 * Whose clock determines the windows. `redis`: one clock for all isolates, for the price of one command
 * (TIME). `edge`: the clock of the Worker.
 */
export type Clock = "redis" | "edge";

/**
 * Creates a Lua script that counts in fixed windows: the twin of engine/fixed-window.ts. All scripts
 * share this frame. `work` is what a single script does; it must set `reply`.
 *
 *   KEYS   One for each counter, for all groups in a row. The key of the counter's ban follows it if
 *          the counter can ban, then the key of its alternative if it has one.
 *          Clock `edge`: the keys as stored, so that every key the script touches is declared.
 *          Clock `redis`: the keys without window numbers, because the script computes these from TIME.
 *   ARGV   The time of the edge in ms, or 0; then the arguments of each script. A counter is eleven
 *          integers: limit, window in ms, offset in ms, cost, ceiling, 1 if it rolls over, 1 if it is
 *          only checked, block, ban in ms, 1 if it never bans, 1 if it has an alternative. That
 *          adds two: limit and ceiling.
 *   Reply  Integers only.
 *
 * A counter is stored as an unsigned 63-bit field, because one BITFIELD command can check and charge
 * it, and Upstash bills commands: see CHARGE_FIELD in lua-charge.ts. INCRBY would need a second
 * command, either to check first or to take back the charge of a denied request.
 *
 * A counter that rolls over is stored as a string, `W:count`: its count in window W, when it was last
 * written. The script subtracts the quota granted since then when it reads the counter.
 *
 * The Lua text has no comments, because a comment would be part of the bundle. The comments are at
 * the constants that hold the text.
 */
export function createScript(clock: Clock, work: string): string {
  // Without this flag Upstash locks the whole database while a script runs. With it, only the
  // declared keys.
  const flags = clock === "edge" ? "#!lua flags=allow-key-locking\n" : "";
  return `${flags}${NOW[clock]}
${luaArguments(clock)}${LUA_COUNTERS}${LUA_UNDO}${work}return reply
`;
}

const NOW: Record<Clock, string> = {
  redis: `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`,
  edge: "local now = tonumber(ARGV[1])",
};

/**
 * - `digits(number)`: an integer as Redis reads it. Lua itself would write 1e+15.
 * - `nextArg()`: the next argument, a number.
 * - `nextKey(suffix)`: the next key, complete with the window number.
 */
function luaArguments(clock: Clock): string {
  return `local argAt, keyAt = 1, 0

local function digits(number)
  return string.format('%.0f', number)
end

local function nextArg()
  argAt = argAt + 1
  return tonumber(ARGV[argAt])
end

local function nextKey(suffix)
  keyAt = keyAt + 1
  return KEYS[keyAt]${clock === "redis" ? " .. suffix" : ""}
end

`;
}
