/**
 * Lua functions with which a script makes all of its writes or none. A command fails if its key
 * stores a value of the wrong type, and Redis then keeps the script's earlier writes. So each
 * charge adds a function to `undoSteps` that takes the charge back. A write that cannot be taken
 * back waits in `finalSteps` until no command can fail any more. So extra commands are needed only
 * if a command fails or a group is denied.
 *
 * - `undoTo(mark)`: takes back the charges made since `#undoSteps` was `mark`.
 * - `runOrUndo(work)`: runs the whole work of a script, and then the final steps. If the work
 *   fails, it takes all charges back and returns the error reply.
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
