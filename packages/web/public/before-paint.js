// Runs before the first paint: sets the theme, and shows the outline of a chat at an address of one.
;(() => {
  const stored = (key) => {
    try {
      return localStorage.getItem(key)
    } catch (error) {
      console.warn('Settings of this browser cannot be read: storage is blocked.', error)
      return null
    }
  }
  const { dataset } = document.documentElement
  // The same key and rule as src/lib/theme.ts.
  const theme = stored('sandlot.theme')
  const dark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  dataset.theme = dark ? 'dark' : 'light'
  // The same key as src/app/layout.tsx.
  if (/^\/(?:s\/|$)/.test(location.pathname))
    dataset.shell = stored('sandlot.sidebar') === 'hidden' ? 'narrow' : 'wide'
})()
