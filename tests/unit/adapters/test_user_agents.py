from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.adapters.enrichment.user_agents import MAX_NAME, MAX_PARSED, UapUserAgentParser
from headrace.ports.enrichment import UserAgentInfo

USER_AGENTS = UapUserAgentParser(cache_size=8)

# A User-Agent, then browser name | version | system name | version | device type.
TABLE = """
Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36
    Chrome | 131.0.0.0 | Windows | 10 | desktop
Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36
    Chrome | 130.0.0.0 | macOS | 10.15 | desktop
Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Safari/537.36
    Chrome | 129.0.0.0 | Linux |  | desktop
Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 Safari/537.36
    Chrome | 128.0.0.0 | ChromeOS | 14541.0 | desktop
Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36
    Chrome | 131.0.0.0 | Android | 10 | mobile
Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36
    Chrome | 131.0.0.0 | Android | 10 | tablet
Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/UD1A.231105.004; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/119.0.6045.163 Mobile Safari/537.36
    Chrome | 119.0.6045.163 | Android | 14 | mobile
Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/119.0.6045.109 Mobile/15E148 Safari/604.1
    Chrome | 119.0.6045.109 | iOS | 17.1 | mobile
Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2.1 Safari/605.1.15
    Safari | 17.2.1 | macOS | 10.15 | desktop
Mozilla/5.0 (iPhone; CPU iPhone OS 17_2_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.2 Mobile/15E148 Safari/604.1
    Safari | 17.2 | iOS | 17.2 | mobile
Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.6 Mobile/15E148 Safari/604.1
    Safari | 16.6 | iOS | 16.6 | tablet
Mozilla/5.0 (iPod touch; CPU iPhone OS 12_5_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/12.1.2 Mobile/15E148 Safari/604.1
    Safari | 12.1.2 | iOS | 12.5 | mobile
Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148
    Safari |  | iOS | 17.0 | mobile
Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0
    Firefox | 132.0 | Windows | 10 | desktop
Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:132.0) Gecko/20100101 Firefox/132.0
    Firefox | 132.0 | macOS | 10.15 | desktop
Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0
    Firefox | 131.0 | Linux |  | desktop
Mozilla/5.0 (X11; Fedora; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0
    Firefox | 128.0 | Linux |  | desktop
Mozilla/5.0 (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0
    Firefox | 132.0 | Android | 14 | mobile
Mozilla/5.0 (Android 13; Tablet; rv:121.0) Gecko/121.0 Firefox/121.0
    Firefox | 121.0 | Android | 13 | tablet
Mozilla/5.0 (iPhone; CPU iPhone OS 14_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/132.0 Mobile/15E148 Safari/605.1.15
    Firefox | 132.0 | iOS | 14.7 | mobile
Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.2903.51
    Edge | 131.0.2903.51 | Windows | 10 | desktop
Mozilla/5.0 (Linux; Android 10; HD1913) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.6778.81 Mobile Safari/537.36 EdgA/131.0.2903.48
    Edge | 131.0.2903.48 | Android | 10 | mobile
Mozilla/5.0 (iPhone; CPU iPhone OS 17_7_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 EdgiOS/131.2903.52 Mobile/15E148 Safari/605.1.15
    Edge | 131.2903.52 | iOS | 17.7 | mobile
Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/64.0.3282.140 Safari/537.36 Edge/18.17763
    Edge | 18.17763 | Windows | 10 | desktop
Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 OPR/115.0.0.0
    Opera | 115.0.0 | Windows | 10 | desktop
Mozilla/5.0 (Linux; Android 10; VOG-L29) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.6723.102 Mobile Safari/537.36 OPR/76.2.4027.73374
    Opera | 76.2.4027 | Android | 10 | mobile
Opera/9.80 (Android; Opera Mini/36.2.2254/119.132; U; id) Presto/2.12.423 Version/12.16
    Opera Mini | 36.2.2254 | Android |  | mobile
Mozilla/5.0 (iPhone; CPU iPhone OS 17_5_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1 OPT/4.7.0
    Opera | 4.7.0 | iOS | 17.5 | mobile
Mozilla/5.0 (Windows NT 10.0; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 OPR/106.0.0.0 (Edition Campaign 34) OPRGX/106.0.0.0
    Opera | 106.0.0 | Windows | 10 | desktop
Mozilla/5.0 (Linux; Android 14; SAMSUNG SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/23.0 Chrome/115.0.0.0 Mobile Safari/537.36
    Samsung Internet | 23.0 | Android | 14 | mobile
Mozilla/5.0 (Linux; Android 13; SAMSUNG SM-X700) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/23.0 Chrome/115.0.0.0 Safari/537.36
    Samsung Internet | 23.0 | Android | 13 | tablet
Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; rv:11.0) like Gecko
    Internet Explorer | 11.0 | Windows | 7 | desktop
Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; WOW64; Trident/6.0; Tablet PC 2.0)
    Internet Explorer | 10.0 | Windows | 8 | desktop
Mozilla/5.0 (Windows NT 6.3; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/109.0.0.0 Safari/537.36
    Chrome | 109.0.0.0 | Windows | 8.1 | desktop
Mozilla/5.0 (Windows NT 5.1; rv:52.0) Gecko/20100101 Firefox/52.0
    Firefox | 52.0 | Windows | XP | desktop
Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/52.0.2743.116 Mobile Safari/537.36 Edge/15.15063
    Edge | 15.15063 | Windows Phone | 10.0 | mobile
Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/122.0.0.0 Safari/537.36 Vivaldi/6.6.3271.45
    Vivaldi | 6.6.3271 | Windows | 10 | desktop
Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 YaBrowser/24.10.0.0 Safari/537.36
    Yandex Browser | 24.10.0 | Windows | 10 | desktop
Mozilla/5.0 (Linux; arm_64; Android 14; SM-A546E) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 YaBrowser/24.10.2.123.00 SA/3 Mobile Safari/537.36
    Yandex Browser | 24.10.2 | Android | 14 | mobile
Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15 Ddg/17.5
    DuckDuckGo | 17.5 | macOS | 10.15 | desktop
Mozilla/5.0 (Linux; Android 11; M2101K6G; en-us) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/89.0.4389.116 Mobile Safari/537.36 XiaoMi/MiuiBrowser/13.5.0-gn
    MIUI Browser | 13.5.0 | Android | 11 | mobile
Mozilla/5.0 (Linux; U; Android 12; en-US; RMX3085) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/100.0.4896.58 UCBrowser/13.6.0.1315 Mobile Safari/537.36
    UC Browser | 13.6.0 | Android | 12 | mobile
Mozilla/5.0 (Linux; Android 12; HarmonyOS; NOH-AN00; HMSCore 6.11.0.302) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/99.0.4844.88 HuaweiBrowser/13.0.6.302 Mobile Safari/537.36
    Huawei Browser | 13.0.6 | Android | 12 | mobile
Mozilla/5.0 (Linux; Android 11; KFTRWI) AppleWebKit/537.36 (KHTML, like Gecko) Silk/118.3.1 like Chrome/118.0.5993.155 Safari/537.36
    Amazon Silk | 118.3.1 | Android | 11 | tablet
Mozilla/5.0 (iPhone; CPU iPhone OS 17_1_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21B101 [FBAN/FBIOS;FBDV/iPhone14,5;FBMD/iPhone;FBSN/iOS;FBSV/17.1.2;FBSS/3;FBID/phone;FBLC/en_US;FBOP/5]
    Facebook |  | iOS | 17.1 | mobile
Mozilla/5.0 (Linux; Android 13; SM-A536B Build/TP1A.220624.014; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/119.0.6045.66 Mobile Safari/537.36 [FB_IAB/FB4A;FBAV/438.0.0.33.118;]
    Facebook | 438.0.0 | Android | 13 | mobile
Mozilla/5.0 (iPhone; CPU iPhone OS 16_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 Instagram 302.0.0.23.113 (iPhone13,2; iOS 16_6; en_US; en; scale=3.00; 1170x2532; 514771650)
    Instagram | 302.0.0 | iOS | 16.6 | mobile
Mozilla/5.0 (iPhone; CPU iPhone OS 17_0_3 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) GSA/286.0.576214532 Mobile/15E148 Safari/604.1
    Google | 286.0.576214532 | iOS | 17.0 | mobile
Mozilla/5.0 (SMART-TV; Linux; Tizen 6.0) AppleWebKit/537.36 (KHTML, like Gecko) 76.0.3809.146/6.0 TV Safari/537.36
    Safari |  | Tizen | 6.0 | tv
Mozilla/5.0 (Web0S; Linux/SmartTV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.79 Safari/537.36 WebAppManager
    Chrome | 79.0.3945.79 | webOS |  | tv
Mozilla/5.0 (Linux; Android 9; BRAVIA 4K UR2 Build/PTT1.190515.001.S104) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/87.0.4280.101 Safari/537.36
    Chrome | 87.0.4280.101 | Android | 9 | tv
Mozilla/5.0 (Linux; Android 7.1.2; AFTMM Build/NS6265; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/70.0.3538.110 Mobile Safari/537.36
    Chrome | 70.0.3538.110 | Android | 7.1 | tv
Mozilla/5.0 (X11; Linux armv7l) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/90.0.4430.225 Safari/537.36 CrKey/1.56.500000
    Chrome | 90.0.4430.225 | Chromecast | 1.56 | tv
Roku/DVP-9.10 (519.10E04111A)
    Roku | 9.10 | Roku | 9.10 | tv
AppleTV11,1/11.1
     |  | tvOS |  | tv
Mozilla/5.0 (PlayStation; PlayStation 5/2.26) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0 Safari/605.1.15
    Safari | 13.0 |  |  | console
Mozilla/5.0 (PlayStation 4 11.00) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0 Safari/605.1.15
    Safari | 13.0 |  |  | console
Mozilla/5.0 (Windows NT 10.0; Win64; x64; Xbox; Xbox One) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 Edge/44.18363.8131
    Edge | 44.18363.8131 | Windows | 10 | console
Mozilla/5.0 (Nintendo Switch; WifiWebAuthApplet) AppleWebKit/609.4 (KHTML, like Gecko) NF/6.0.2.21.3 NintendoBrowser/5.1.0.22474
     |  |  |  | console
Mozilla/5.0 (Mobile; Nokia_8110_4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5.1
    Firefox | 48.0 | KaiOS | 2.5 | mobile
Mozilla/5.0 (BB10; Touch) AppleWebKit/537.10+ (KHTML, like Gecko) Version/10.0.9.2372 Mobile Safari/537.10+
    BlackBerry WebKit | 10.0.9 | BlackBerry OS | 10.0 | mobile
Mozilla/5.0 (X11; FreeBSD amd64; rv:120.0) Gecko/20100101 Firefox/120.0
    Firefox | 120.0 | FreeBSD |  | desktop
Mozilla/5.0 (Linux; Android 10; CUBOT P40) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36
    Chrome | 120.0.0.0 | Android | 10 | mobile
Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Slack/4.35.126 Chrome/118.0.5993.144 Electron/27.1.2 Safari/537.36
    Electron | 27.1.2 | Windows | 10 | desktop
Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
    Googlebot | 2.1 |  |  | bot
Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.6778.69 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)
    Googlebot | 2.1 | Android | 6.0 | bot
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36
    bingbot | 2.0 |  |  | bot
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot
    GPTBot | 1.2 |  |  | bot
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)
    ClaudeBot | 1.0 |  |  | bot
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot
     |  |  |  | bot
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)
    PerplexityBot | 1.0 |  |  | bot
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Perplexity-User/1.0; +https://perplexity.ai/perplexity-user)
     |  |  |  | bot
Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)
    Bytespider |  | Android | 5.0 | bot
facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)
    FacebookBot | 1.1 |  |  | bot
meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)
    crawler |  |  |  | bot
Twitterbot/1.0
    Twitterbot | 1.0 |  |  | bot
Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)
    Slackbot-LinkExpanding | 1.0 |  |  | bot
LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)
    LinkedInBot | 1.0 |  |  | bot
Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)
    Discordbot | 2.0 |  |  | bot
TelegramBot (like TwitterBot)
    TelegramBot |  |  |  | bot
WhatsApp/2.23.20.0
    WhatsApp | 2.23.20 |  |  | bot
Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)
    YandexBot | 3.0 |  |  | bot
Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)
    Baiduspider | 2.0 |  |  | bot
DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)
    DuckDuckBot | 1.1 |  |  | bot
Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)
    AhrefsBot | 7.0 |  |  | bot
Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)
    SemrushBot | 7 |  |  | bot
Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)
    Applebot | 0.1 | macOS | 10.15 | bot
Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)
    Yahoo! Slurp |  |  |  | bot
CCBot/2.0 (https://commoncrawl.org/faq/)
    CCBot | 2.0 |  |  | bot
Mozilla/5.0 (compatible; archive.org_bot +http://www.archive.org/details/archive.org_bot)
    archive.org_bot |  |  |  | bot
Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)
    UptimeRobot | 2.0 |  |  | bot
Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)
    PingdomBot | 1.4 |  |  | bot
Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/66.0.3359.181 Safari/537.36 PingdomTMS/0.8.5
    PingdomBot | 0.8.5 | Windows | 7 | bot
Mozilla/5.0 (Macintosh; Intel Mac OS X 10_14_6) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/98.0.4758.102 Safari/537.36 StatusCake
    Chrome | 98.0.4758.102 | macOS | 10.14 | bot
Mozilla/5.0 (compatible; StatusCake)
     |  |  |  | bot
Better Uptime Bot Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/86.0.4240.75 Safari/537.36
    Better Uptime Bot |  | macOS | 10.15 | bot
Site24x7
    Site24x7 |  |  |  | bot
DatadogSynthetics
     |  |  |  | bot
Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 DatadogSynthetics
    Chrome | 120.0.0.0 | Linux |  | bot
check_http/v2.3.3 (monitoring-plugins 2.3.3)
     |  |  |  | bot
Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/131.0.0.0 Safari/537.36
    HeadlessChrome | 131.0.0 | Linux |  | bot
Mozilla/5.0 (Unknown; Linux x86_64) AppleWebKit/538.1 (KHTML, like Gecko) PhantomJS/2.1.1 Safari/538.1
    PhantomJS | 2.1.1 | Linux |  | bot
Mozilla/5.0 (Linux; Android 11; moto g power (2022)) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/109.0.0.0 Mobile Safari/537.36 Chrome-Lighthouse
    Chrome | 109.0.0.0 | Android | 11 | bot
Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/119.0.0.0 Safari/537.36 Google-InspectionTool/1.0
    Google-InspectionTool | 1.0 | macOS | 10.15 | bot
GoogleOther
    GoogleOther |  |  |  | bot
Mediapartners-Google
    Mediapartners-Google |  |  |  | bot
AdsBot-Google (+http://www.google.com/adsbot.html)
    AdsBot-Google |  |  |  | bot
FeedFetcher-Google; (+http://www.google.com/feedfetcher.html)
     |  |  |  | bot
Feedly/1.0 (+http://www.feedly.com/fetcher.html; like FeedFetcher-Google)
     |  |  |  | bot
Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120 Safari/537.36 Prerender (+https://github.com/prerender/prerender)
    Safari |  | Windows | 10 | bot
Mozilla/5.0 (compatible; SomeNewCrawler/1.0; +https://example.com/crawler)
    SomeNewCrawler | 1.0 |  |  | bot
Mozilla/5.0 (compatible; FancyBot/1.0; +https://example.com)
    FancyBot | 1.0 |  |  | bot
Amazon CloudFront
     |  |  |  |
Amazon-Route53-Health-Check-Service (ref 1234; report http://amzn.to/1vsZADi)
     |  |  |  | bot
GoogleStackdriverMonitoring-UptimeChecks(https://cloud.google.com/monitoring)
     |  |  |  | bot
kube-probe/1.27
     |  |  |  | bot
ELB-HealthChecker/2.0
     |  |  |  | bot
python-requests/2.31.0
    Python Requests | 2.31 |  |  |
Python-urllib/3.11
    Python-urllib | 3.11 |  |  |
python-httpx/0.27.0
     |  |  |  |
Python/3.11 aiohttp/3.9.1
    Python aiohttp | 3.9.1 |  |  |
curl/8.4.0
    curl | 8.4.0 |  |  |
curl/7.68.0 (x86_64-pc-linux-gnu) libcurl/7.68.0
    curl | 7.68.0 | Linux |  |
Wget/1.21.4
    Wget | 1.21.4 |  |  |
axios/1.6.2
    axios | 1.6.2 |  |  |
okhttp/4.12.0
    okhttp | 4.12.0 |  |  |
Go-http-client/2.0
    Go-http-client | 2.0 |  |  |
node-fetch/1.0 (+https://github.com/bitinn/node-fetch)
     |  |  |  |
node
     |  |  |  |
Java/17.0.9
    Java | 17.0.9 |  |  |
Java-http-client/17.0.9
     |  |  |  |
Apache-HttpClient/4.5.14 (Java/17.0.9)
    Apache-HttpClient | 4.5.14 |  |  |
PostmanRuntime/7.36.0
    PostmanRuntime | 7.36.0 |  |  |
GuzzleHttp/7
     |  |  |  |
libwww-perl/6.67
    libwww-perl | 6.67 |  |  |
Scrapy/2.11.0 (+https://scrapy.org)
    Scrapy | 2.11.0 |  |  | bot
Dart/3.2 (dart:io)
     |  |  |  |
MyApp/3.2 (iPhone; iOS 17.2; Scale/3.00)
    Safari |  | iOS | 17.2 | mobile
MyApp/1 CFNetwork/1410.0.3 Darwin/22.6.0
    MyApp | 1 | iOS | 16 | mobile
Mozilla/5.0 (Linux; Android 12; SHIELD Android TV) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36
    Chrome | 120.0.0.0 | Android | 12 | tv
Mozilla/5.0 (Linux; Android 14; SM-X910) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36
    Chrome | 131.0.0.0 | Android | 14 | tablet
Mozilla/5.0 (Linux; Android 10; Quest 3) AppleWebKit/537.36 (KHTML, like Gecko) OculusBrowser/30.0 Chrome/116.0.0.0 VR Safari/537.36
    Oculus Browser | 30.0 | Android | 10 |
Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15
    DuckDuckGo | 7 | iOS | 17.0 | mobile
Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148 MicroMessenger/8.0.42(0x18002a2c) NetType/WIFI Language/zh_CN
    WeChat | 8.0.42 | iOS | 17.0 | mobile
Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0 SeaMonkey/2.53.18
    SeaMonkey | 2.53.18 | Linux |  | desktop
Mozilla/5.0 (Windows NT 10.0; Win64; x64) Cypress/13.6.0 Chrome/114.0.5735.289 Electron/25.8.4 Safari/537.36
    Electron | 25.8.4 | Windows | 10 | bot
Mozilla/5.0 (Linux; Android 11; CUBOT_X18_Plus) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/90.0.4430.210 Mobile Safari/537.36
    Chrome | 90.0.4430.210 | Android | 11 | mobile
Mozilla/5.0 (iPad; CPU OS 12_5_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/92.0.4515.90 Mobile/15E148 Safari/604.1
    Chrome | 92.0.4515.90 | iOS | 12.5 | tablet
Mozilla/5.0 (X11; U; Linux i686; en-US; rv:1.9.2) Gecko/20100115 Ubuntu/10.04 (lucid) Firefox/3.6
    Firefox | 3.6 | Linux |  | desktop
Mozilla/5.0 (linux) AppleWebKit/537.36 (KHTML, like Gecko) jsdom/20.0.3
     |  | Linux |  | bot
Snap URL Preview Service; bot; snapchat; https://developers.snap.com/robots
    Snap URL Preview Service; bot |  |  |  | bot
Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot) Chrome/119.0.6045.214 Safari/537.36
    Amazonbot | 0.1 |  |  | bot
Mozilla/5.0 (Linux; Android 7.0;) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; PetalBot;+https://webmaster.petalsearch.com/site/petalbot)
    PetalBot |  |  |  | bot
Uptime-Kuma/1.23.11
     |  |  |  | bot
Mozilla/5.0 (Windows NT 6.2; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/66.0.3359.170 Safari/537.36 OPR/53.0.2907.99
    Opera | 53.0.2907 | Windows | 8 | desktop
Apache-HttpClient/UNAVAILABLE (Java/1.8.0_292)
    Apache-HttpClient |  |  |  |
Mozilla/5.0 (Linux; Android 9; SM-T510) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/96.0.4664.45 Mobile Safari/537.36
    Chrome | 96.0.4664.45 | Android | 9 | tablet
Mozilla/5.0 (Linux; NetCast; U) AppleWebKit/537.31 (KHTML, like Gecko) Chrome/38.0.2125.122 Safari/537.31 SmartTV/7.0
    Chrome | 38.0.2125.122 | Linux |  | tv
Mozilla/5.0 (Fuchsia) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/114.0.0.0 Safari/537.36 CrKey/1.56.500000
    Chrome | 114.0.0.0 | Chromecast | 1.56 | tv
"""  # noqa: E501 - User-Agents are long


class Case(NamedTuple):
    user_agent: str
    software: UserAgentInfo


def read_table(table: str) -> tuple[Case, ...]:
    lines = table.strip("\n").split("\n")
    return tuple(map(read_case, lines[::2], lines[1::2]))


def read_case(user_agent: str, expected: str) -> Case:
    browser, version, system, system_version, device = (
        part.strip() for part in expected.split("|")
    )
    is_bot = device == "bot"
    return Case(user_agent, UserAgentInfo(browser, version, system, system_version, device, is_bot))


CASES = read_table(TABLE)


@pytest.mark.parametrize("case", CASES, ids=[case.user_agent[-60:] for case in CASES])
def test_real_user_agents_are_known(case: Case) -> None:
    assert USER_AGENTS.parse(case.user_agent) == case.software


def test_missing_user_agent_is_empty_and_not_a_bot() -> None:
    assert USER_AGENTS.parse("") == UserAgentInfo()


def test_cached_result_is_the_same() -> None:
    first = [USER_AGENTS.parse(case.user_agent) for case in CASES[:4]]
    assert [USER_AGENTS.parse(case.user_agent) for case in CASES[:4]] == first


def test_text_past_the_limit_is_ignored() -> None:
    padding = "Mozilla/5.0".ljust(MAX_PARSED)
    assert (
        USER_AGENTS.parse(padding + "Googlebot/2.1")
        == USER_AGENTS.parse(padding)
        == UserAgentInfo()
    )


def test_lone_surrogates_do_not_hide_the_rest() -> None:
    user_agent = "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 \ud800 Firefox/132.0"
    assert USER_AGENTS.parse(user_agent) == UserAgentInfo(
        "Firefox", "132.0", "Linux", "", "desktop"
    )


def test_version_taken_from_the_text_is_bounded() -> None:
    software = USER_AGENTS.parse(f"Mozilla/5.0 (X11; Linux) Chrome/{'1' * 900}.0.0.0 Safari/537.36")
    assert software == UserAgentInfo("Chrome", "1" * MAX_NAME, "Linux", "", "desktop")


DEVICE_TYPES = {"desktop", "mobile", "tablet", "tv", "console", "bot", ""}
PIECES = st.sampled_from([chunk for case in CASES for chunk in case.user_agent.split(" ")])


@given(st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text())).map(" ".join)))
def test_any_text_is_parsed(text: str) -> None:
    software = USER_AGENTS.parse(text)
    names = (software.browser_name, software.os_name)
    versions = (software.browser_version, software.os_version)
    assert software.device_type in DEVICE_TYPES
    assert software.is_bot == (software.device_type == "bot")
    assert all(len(part) <= MAX_NAME for part in names + versions)


@given(st.text(min_size=1, max_size=8))
def test_very_long_text_is_parsed_by_its_beginning(chunk: str) -> None:
    text = chunk * 100_000
    assert USER_AGENTS.parse(text) == USER_AGENTS.parse(text[:MAX_PARSED])
