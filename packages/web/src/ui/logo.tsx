/** The mark: a diamond with a player in the middle. */
export function LogoMark(props: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" className={props.className} aria-hidden>
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path
        d="M16 6.5 25.5 16 16 25.5 6.5 16Z"
        fill="none"
        stroke="var(--accent-ink)"
        strokeWidth="2.4"
        strokeLinejoin="round"
      />
      <circle cx="16" cy="16" r="2.6" fill="var(--accent-ink)" />
    </svg>
  )
}
