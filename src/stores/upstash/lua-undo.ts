/**
 * Lua functions that make a script all or nothing. A command fails on a key that holds another type,
 * and Redis keeps what the script wrote before that. So each charge adds a function to `undoSteps`
 * that takes it back, and a write that cannot be taken back waits in `finalSteps` until nothing can
 * fail any more. This costs no command unless one fails.
 *
 * - `undoTo(mark)`: takes back the charges made since `#undoSteps` was `mark`.
 * - `runOrUndo(work)`: runs all of a script's work. Returns the error reply if it failed.
 *
 * An error is a table since Redis 7, and a string in earlier versions.
 */
export const LUA_UNDO = `local undoSteps, finalSteps = {}, {}

local function undoTo(mark)
  for at = #undoSteps, mark + 1, -1 do
    undoSteps[at]()
    undoSteps[at] = nil
  end
end

local function runOrUndo(work)
  local succeeded, failure = pcall(work)
  if not succeeded then
    undoTo(0)
    return type(failure) == 'table' and failure or redis.error_reply(tostring(failure))
  end
  for _, finish in ipairs(finalSteps) do
    finish()
  end
end

`;
