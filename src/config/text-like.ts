/**
 * A text for which editors suggest the given examples.
 *
 * Any text compiles: an object in a variable has texts of the type `string`, and `defineConfig` reports a
 * text that is not valid. The intersection keeps the compiler from reducing the union to `string`, which
 * would lose the suggestions.
 */
export type TextLike<Example extends string> = Example | (string & Record<never, never>);
