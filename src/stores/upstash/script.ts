import { LUA_COUNTERS } from "./lua-counters.ts";
import { LUA_UNDO } from "./lua-undo.ts";

/**
 * The clock that determines the windows. `redis`: the clock of Redis, which all isolates share.
 * This clock costs one more command (TIME). `edge`: the clock of the Worker.
 */
export type Clock = "redis" | "edge";

/**
 * Creates a Lua script that counts in fixed windows, with the algorithm of engine/fixed-window.ts.
 * All scripts share this frame. `work` is the Lua text in which the scripts differ. It must set the
 * variable `reply`.
 *
 *   KEYS   One key for each counter, one group after another. Each key is followed by the key of
 *          the counter's ban if the counter has a ban, the key of its strikes if its bans become
 *          longer, and the key of its alternative if it has one. With the clock `edge`, these are
 *          the keys as stored, so that every key that the script uses is declared. With the clock
 *          `redis`, the keys lack the window numbers, because the script computes these numbers
 *          from TIME.
 *   ARGV   The Worker's time in ms with the clock `edge`, otherwise 0. Then the arguments of the
 *          script. A counter is eleven integers: limit, window in ms, offset in ms, cost, ceiling,
 *          1 if it rolls over, 1 if it is only checked, block, ban in ms, 1 if it never bans, 1 if
 *          it has an alternative. Some counters have other or more integers:
 *          - An alternative adds its limit and its ceiling.
 *          - If bans become longer, the negative number of their lengths replaces the ban in ms.
 *            After "1 if it never bans" come the lengths, and the time after which strikes are
 *            forgotten, all in ms.
 *          - A calendar counter has the window 0, and the longest length of its windows replaces
 *            the offset. Five more integers come before "1 if it has an alternative": see
 *            `readCalendar`.
 *   Reply  Integers only.
 *
 * A counter is stored as an unsigned 63-bit field, because one BITFIELD command can check and
 * charge such a field (see CHARGE_FIELD in lua-charge.ts), and Upstash bills each command. INCRBY
 * would need a second command, either to check first or to take back the charge of a denied
 * request.
 *
 * A counter that rolls over is stored as a string, `W:count:limit`. `W` is the number of the window in
 * which the counter was last written, `count` is its count at that time, and `limit` is the limit by
 * which its key expires. When the script reads the counter, it subtracts the quota granted since then.
 *
 * The Lua text has no comments, because a comment would be part of the bundle. The comments are
 * above the constants that contain the text.
 */
export function createScript(clock: Clock, work: string): string {
  // Without this flag Upstash locks the whole database while a script runs. With the flag, Upstash
  // locks only the declared keys.
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
 * - `digits(number)`: writes an integer so that Redis can read it. Lua itself would write 1e+15.
 * - `nextArg()`: returns the next argument as a number.
 * - `nextKey(suffix)`: returns the next key. With the clock `redis`, it appends the suffix.
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
