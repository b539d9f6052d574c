"""Words that carry no meaning of their own, by language: function words, written down for this project."""

_WORDS = {
    "english": """
        a about above after again against all also am an and any are aren't as at be because been before being
        below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down
        during each few for from further had hadn't has hasn't have haven't having he her here hers him his how
        i i'm i've if in into is isn't it it's its itself just let's me more most my nor of off on once
        only or other our ours out over own same she should so some such than that that's the their theirs them
        then there these they this those through to too under until up very was wasn't we were weren't what when
        where which while who whom why will with won't would you your yours""",
    "german": """
        aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den denn der des
        dich die dies diese dieser dieses dir doch du durch ein eine einem einen einer eines er es euch euer für
        hat habe haben hier ich ihm ihn ihr ihre im in ist ja jede kann kein keine man mein mich mir mit nach
        nicht noch nun nur ob oder ohne sehr sein seine sich sie sind so über um und uns unser unter vom von vor
        war was wer wie wir wird wo zu zum zur""",
    "french": """
        à au aux avec ce ces cet cette dans de des du elle elles en est et été être eux il ils je l la le les
        leur leurs lui ma mais me même mes moi mon ne nos notre nous on ont ou où par pas pour qu que qui s sa
        sans se ses si son sont sur ta te tes toi ton tu un une vos votre vous y""",
    "spanish": """
        a al algo como con contra cual cuando de del desde donde dos el ella ellas ellos en entre era es esa ese
        eso esta este esto fue ha hasta hay la las le les lo los más me mi mis mucho muy ni no nos nosotros o os
        otra otro para pero poco por porque que qué quien se ser si sí sin sobre son su sus también te tu tus un
        una uno unos y ya yo""",
    "italian": """
        a ad ai al alla alle anche che chi ci come con cui da dal dalla degli dei del della delle di e è ed era
        gli ha ho i il in io la le lei lo loro lui ma mi ne nei nel nella no noi non o per più quale quando
        quella quello questa questo se si sono su sua sue sui sul sulla suo ti tra tu un una uno vi voi""",
    "portuguese": """
        a à ao aos as às até com como da das de dela dele do dos e é ela ele em entre era essa esse esta este eu
        foi há isso já lhe mais mas me mesmo meu minha muito na não nas nem no nos nós o os ou para pela pelo
        por qual quando que quem se sem ser seu só sua são também te tem um uma você""",
    "dutch": """
        aan al als bij dan dat de der deze die dit doch door dus een en er ge haar had heb heeft hem het hier
        hij hoe ik in is ja je kan maar me mij mijn na naar niet nog nu of om ons ook op over te toch tot u uit
        van voor waar was wat we wel wie wij wordt ze zich zij zijn zo zou""",
    "swedish": """
        alla allt att av blev bli då de dem den denna det detta dig din du där efter ej eller en er ett för från
        ha hade han hans har henne hon hur här i icke ingen inte jag kan man med men mig min mot mycket ni nu när
        och om oss på sig sin ska skulle som så till under upp ut utan vad var vara vi vid vilken än är åt över""",
}

STOP_WORDS: dict[str, frozenset[str]] = {language: frozenset(words.split()) for language, words in _WORDS.items()}
