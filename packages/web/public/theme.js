// Sets the theme before the first paint. The same key and rule as src/lib/theme.ts.
;(() => {
  let choice = 'system'
  try {
    choice = localStorage.getItem('sandlot.theme') ?? 'system'
  } catch (error) {
    console.warn('The theme is not remembered: storage is blocked.', error)
  }
  const dark = choice === 'dark' || (choice !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
})()
