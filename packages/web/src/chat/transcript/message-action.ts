/**
 * The look of a small button under a message. Shown when the pointer or the keyboard is there;
 * always where nothing hovers.
 */
export const ACTION =
  'inline-flex h-7 min-w-7 items-center justify-center rounded-md text-faint opacity-0 transition-opacity group-focus-within/message:opacity-100 group-hover/message:opacity-100 group-data-newest/message:opacity-100 hover:bg-hover hover:text-ink pointer-coarse:h-11 pointer-coarse:min-w-11 pointer-coarse:opacity-100'
