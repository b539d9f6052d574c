"""The names that columns usually have in German, French, Spanish, Italian, Portuguese and Dutch, and their words for
yes and no.

All are folded as in `column_names.py`: without accents, spaces and punctuation, in lower case. German umlauts are there
in both spellings. Names that an English column may have, with another meaning, are left out, or are in `DOUBTFUL`.
"""

from __future__ import annotations

QUERY = """
    suchbegriffe suchanfragen suche suchtext suchphrase suchworte suchworter suchwoerter suchwort stichwort stichworte
    requete requetes termederecherche termesderecherche termerecherche termesrecherche texterecherche motcle motscles
    expressionderecherche
    consulta consultas terminodebusqueda terminosdebusqueda terminobusqueda terminosbusqueda textodebusqueda busquedas
    palabraclave palabrasclave
    ricerca ricerche terminediricerca terminidiricerca terminericerca terminiricerca testoricerca testodiricerca
    parolachiave parolechiave
    pesquisa pesquisas termodepesquisa termosdepesquisa termopesquisa termosdebusca termodebusca busca buscas
    palavrachave palavraschave
    zoekterm zoektermen zoekwoord zoekwoorden zoekopdracht zoekopdrachten zoekvraag zoektekst trefwoord trefwoorden
    haufigstesuchanfragen haeufigstesuchanfragen requeteslesplusfrequentes consultasprincipales principalesconsultas
    querypiufrequenti principaisconsultas consultasmaisfrequentes"""
DOC_ID = """
    artikelnr artnr artikelid artikelcode produktid produktnummer produktnr dokumentid dokumentnummer
    idproduit idduproduit codeproduit refproduit referenceproduit referenceduproduit idarticle codearticle refarticle
    referencearticle iddocument iddudocument
    idproducto codigoproducto codigodeproducto codigodelproducto idarticulo codigoarticulo codigodearticulo iddocumento
    idprodotto codiceprodotto idarticolo codicearticolo
    idproduto codigoproduto codigodoproduto idartigo
    productnummer productnr documentnummer"""
KINDS = "artikel produkt dokument produit producto articulo documento prodotto articolo produto artigo"
"""In a log the document itself. A file of documents may have their kinds or names there."""
CODES = "reference referencia codigo codice"
"""Of a document; in a log they may be those of a campaign, a country, a voucher."""
CLICKS = """
    klicks klick geklickt angeklickt wurdegeklickt anzahlklicks anzahlderklicks klickanzahl klickzahl
    clics clic clique estclique nombredeclics nbclics nbclic
    clicado pulsado numerodeclics hizoclic
    cliccato numeroclic numerodiclic
    cliques clicou numerodecliques foiclicado
    kliks klik klikken geklikt aangeklikt aantalklikken aantalkliks"""
IMPRESSIONS = """
    impressionen einblendungen affichages impresiones impressioni impressoes exibicoes vertoningen"""
RESULTS = "ergebnisse treffer resultats resultados risultati resultaten"
POSITION = "platz rang posicion posizione posicao positie"
USER = """
    nutzer nutzerid benutzer benutzerid besucherid kundennummer kundenid kundennr
    utilisateur idutilisateur visiteur idvisiteur idclient
    usuario idusuario cliente idcliente visitante idvisitante
    utente idutente visitatore idvisitatore
    utilizador idutilizador
    gebruiker gebruikerid gebruikersid bezoeker bezoekerid klant klantid klantnummer"""
SESSION = """
    sitzung sitzungid sitzungsid idsession iddesession sesion idsesion iddesesion sessione idsessione sessao idsessao
    iddasessao sessie sessieid besuchsid idvisite idvisita"""
TIME = """
    datumuhrzeit datumundzeit datumzeit horodatage dateheure dateetheure datederecherche dateduclic datederequete
    fecha fechahora fechayhora marcadetiempo dataora dataeora datahora dataehora tijdstip datumtijd datumentijd data"""
EVENT = """
    ereignis ereignistyp aktion evenement typeevenement evento tipoevento tipodeevento tipodievento accion azione acao
    gebeurtenis actie"""
TITLE = """
    produktname produktbezeichnung produkttitel artikelname artikelbezeichnung uberschrift ueberschrift
    titre intitule libelle nomduproduit nomproduit
    titulo nombredelproducto nombredeproducto nombreproducto
    titolo nomeprodotto nomedelprodotto
    nomedoproduto nomeproduto
    productnaam artikelnaam naam nom nome nombre"""
NAMES = {
    "query": QUERY, "doc_id": DOC_ID, "clicks": CLICKS, "impressions": IMPRESSIONS, "results": RESULTS,
    "position": POSITION, "user": USER, "session": SESSION, "time": TIME, "event": EVENT, "title": TITLE,
}  # fmt: skip

YES = ("ja", "oui", "si", "sim", "wahr", "vrai", "verdadero", "vero", "verdadeiro", "waar")
NO = ("nein", "non", "nao", "nee", "falsch", "faux", "falso", "onwaar")

DOUBTFUL = {
    "time": {"data": "date"},
    "title": {"nom": "text", "nome": "text", "nombre": "text"},
    "query": dict.fromkeys(("suchanfragen", "suchbegriffe", "suche", "requetes", "consultas", "busquedas", "ricerche",
                            "pesquisas", "buscas", "zoekopdrachten", "queries"), "text"),
}  # fmt: skip
"""Names that may also count something, or hold anything at all, and what their values must be: text that is no number,
or a date."""
