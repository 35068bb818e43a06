/** An option whose value is not allowed. The message names the option, the fault and what is allowed. */
export class RefusedOption extends Error {
  override readonly name = "RefusedOption";
}
